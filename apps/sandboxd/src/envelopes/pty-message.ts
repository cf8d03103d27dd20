import { limits } from '@sandwire/protocol'

/** What a client of the envelope asks for. */
export type PtyRequest =
  | { readonly is: 'input'; readonly bytes: Uint8Array }
  | { readonly is: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly is: 'ping' }
  /** It cannot be done; why is told, and the connection stays. */
  | { readonly is: 'wrong'; readonly why: string }

/** Size of a terminal whose client does not say. */
const DEFAULT_COLS = 80
const DEFAULT_ROWS = 24
const MAX_TYPE_CHARS = 40

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON is input, as it stands.
    return undefined
  }
}

function isCells(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= limits.MAX_CELLS
}

function inputOf(text: string): PtyRequest {
  return { is: 'input', bytes: new TextEncoder().encode(text) }
}

function readResize(message: object): PtyRequest {
  const cols: unknown = Reflect.get(message, 'cols') ?? DEFAULT_COLS
  const rows: unknown = Reflect.get(message, 'rows') ?? DEFAULT_ROWS
  if (isCells(cols) && isCells(rows)) return { is: 'resize', cols, rows }
  return { is: 'wrong', why: `Cannot resize: expected whole numbers from 1 to ${limits.MAX_CELLS}` }
}

function readInput(message: object): PtyRequest {
  const data: unknown = Reflect.get(message, 'data') ?? ''
  return typeof data === 'string' ? inputOf(data) : { is: 'wrong', why: 'Cannot take input: expected a text' }
}

/** Reads a message. What is no JSON object is input: somebody who types a digit means it. */
export function readPtyMessage(message: string | Uint8Array): PtyRequest {
  if (typeof message !== 'string') return { is: 'input', bytes: message }
  const value = parse(message)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return inputOf(message)
  const type: unknown = Reflect.get(value, 'type')
  if (type === 'input') return readInput(value)
  if (type === 'resize') return readResize(value)
  if (type === 'ping') return { is: 'ping' }
  const shown = typeof type === 'string' ? type.replace(/[^\x20-\x7e]/g, '').slice(0, MAX_TYPE_CHARS) : ''
  return { is: 'wrong', why: `Cannot use a message of type "${shown}": expected input, resize or ping` }
}
