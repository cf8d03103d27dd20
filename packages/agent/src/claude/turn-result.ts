import { boundText } from '../bound.ts'
import { type EndStatus, MAX_TEXT_CHARS, type MessageReceipt, type RunEvent } from '../event.ts'
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

/** How a run ended whose program exited by itself: as its last turn did, or in one. Undefined: it was never asked for anything. */
export function endOfProgram(
  code: number | null,
  signal: string | null,
  last: TurnResult | 'in turn' | undefined,
): Pick<TurnResult, 'status' | 'message'> {
  if (typeof last === 'object') return { status: last.status, message: last.message }
  if (last === undefined && code === 0) return { status: 'completed', message: null }
  const how = signal === null ? `with code ${code ?? 'unknown'}` : `by signal ${signal}`
  return { status: 'crashed', message: `The agent ended ${how} before it reported a result` }
}

/** A request to the model API that is tried again. */
export function readRetry(line: Json): RunEvent {
  return {
    type: 'status',
    status: 'retry',
    attempt: numberAt(line, 'attempt') ?? 0,
    maxAttempts: numberAt(line, 'max_retries') ?? 0,
    httpStatus: numberAt(line, 'error_status') ?? null,
  }
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
