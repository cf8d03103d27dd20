import { limits } from '@sandwire/protocol'

/** A message of a client of `/ws/pty`, decoded. */
export type CompatPtyRequest =
  | { readonly kind: 'input'; readonly bytes: Uint8Array }
  | { readonly kind: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly kind: 'ping' }
  /** Answered with an error; the connection stays open. */
  | { readonly kind: 'invalid'; readonly problem: string }

/** Size of a resize message that does not say. */
const DEFAULT_COLS = 80
const DEFAULT_ROWS = 24
const MAX_TYPE_CHARS = 40

/** Decodes a message. Anything but a JSON object is input: a user who types a digit sends one. */
export function parsePtyRequest(message: string | Uint8Array): CompatPtyRequest {
  if (typeof message !== 'string') return { kind: 'input', bytes: message }
  const value = parseJson(message)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return inputOf(message)
  const type: unknown = Reflect.get(value, 'type')
  if (type === 'input') return parseInput(value)
  if (type === 'resize') return parseResize(value)
  if (type === 'ping') return { kind: 'ping' }
  const shown = typeof type === 'string' ? type.replace(/[^\x20-\x7e]/g, '').slice(0, MAX_TYPE_CHARS) : ''
  return {
    kind: 'invalid',
    problem: `Cannot use a message of type "${shown}": expected input, resize or ping`,
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Text that is not JSON is input.
    return undefined
  }
}

function inputOf(text: string): CompatPtyRequest {
  return { kind: 'input', bytes: new TextEncoder().encode(text) }
}

function parseInput(message: object): CompatPtyRequest {
  const data: unknown = Reflect.get(message, 'data') ?? ''
  if (typeof data === 'string') return inputOf(data)
  return { kind: 'invalid', problem: 'Cannot take input: expected a string' }
}

function parseResize(message: object): CompatPtyRequest {
  const cols: unknown = Reflect.get(message, 'cols') ?? DEFAULT_COLS
  const rows: unknown = Reflect.get(message, 'rows') ?? DEFAULT_ROWS
  if (isCells(cols) && isCells(rows)) return { kind: 'resize', cols, rows }
  return { kind: 'invalid', problem: `Cannot resize: expected whole numbers from 1 to ${limits.MAX_CELLS}` }
}

function isCells(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= limits.MAX_CELLS
}
