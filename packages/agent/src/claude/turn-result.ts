import { boundText } from '../bound.ts'
import { type EndStatus, MAX_TEXT_CHARS, type MessageReceipt } from '../event.ts'
import { type Json, numberAt, textAt } from '../json.ts'

const MAX_MESSAGE_CHARS = 4_000

/** What a result line said about the turn that it ends. */
export interface TurnResult {
  readonly status: EndStatus
  readonly message: string | null
  readonly summary: string
  readonly structured: unknown
}

/** Reads a result line. Its `subtype` is `success` for errors of the API too. */
export function readTurnResult(line: Json): TurnResult {
  const summary = boundText(textAt(line, 'result') ?? '', MAX_TEXT_CHARS).text
  const structured = line['structured_output'] ?? null
  const subtype = textAt(line, 'subtype') ?? ''
  if (line['is_error'] !== true && subtype === 'success')
    return { status: 'completed', message: null, summary, structured }
  const isLimit =
    subtype === 'error_max_turns' ||
    subtype === 'error_max_budget_usd' ||
    // The gateway's answer when the budget is spent.
    numberAt(line, 'api_error_status') === 402
  const errors: unknown = line['errors']
  const listed = Array.isArray(errors) ? errors.filter((error) => typeof error === 'string').join('\n') : ''
  const message = boundText(summary || listed || subtype || 'The agent failed', MAX_MESSAGE_CHARS).text
  return { status: isLimit ? 'budget' : 'failed', message, summary, structured }
}

/** Receipt of each state that the program reports for a message. */
const RECEIPTS: Readonly<Record<string, MessageReceipt>> = {
  queued: 'queued',
  started: 'started',
  completed: 'completed',
  cancelled: 'canceled',
}

/** What a line says about a message; undefined for states that this release does not know. */
export function readReceipt(line: Json): MessageReceipt | undefined {
  const state = textAt(line, 'state') ?? ''
  return Object.hasOwn(RECEIPTS, state) ? RECEIPTS[state] : undefined
}
