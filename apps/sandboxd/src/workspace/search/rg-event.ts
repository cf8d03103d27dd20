import { pathFromBytes } from '@sandwire/protocol'
import type { CutLine, RgLine } from './rg-lines.ts'

/** Where a match is in the bytes of its line. */
export type ByteRange = readonly [start: number, end: number]

/** A line that ripgrep found, or one beside it. */
export interface FoundLine {
  readonly kind: 'match' | 'context'
  readonly path: string
  readonly line: number
  /** The line without its end, or the beginning of a very long one. */
  readonly bytes: Uint8Array
  readonly ranges: readonly ByteRange[]
  /** There is more of the line than `bytes` hold. */
  readonly isCut: boolean
}

/** What ripgrep says in one line of JSON. */
export type RgEvent =
  | FoundLine
  | { readonly kind: 'file-end' }
  /** The last one; without it the search broke off. */
  | { readonly kind: 'summary' }

/** Stands behind the text of a line. Quotes inside a text are escaped, so that it stands nowhere else. */
export const AFTER_TEXT = '},"line_number":'

/** An event up to somewhere in its line. */
const HEAD =
  /^\{"type":"(match|context)","data":\{"path":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\}),"lines":\{"(text|bytes)":"(.*)$/s

/** Decodes what ripgrep says; undefined for what nobody needs, and for what is not understood. */
export function decodeRgLine(line: RgLine): RgEvent | undefined {
  return line instanceof Uint8Array ? decodeWhole(line) : decodeCut(line)
}

function decodeWhole(line: Uint8Array): RgEvent | undefined {
  const event = parse(Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString())
  const kind = field(event, 'type')
  const data = field(event, 'data')
  if (kind === 'summary') return { kind }
  if (kind === 'end') return { kind: 'file-end' }
  if (kind !== 'match' && kind !== 'context') return undefined
  const path = bytesIn(field(data, 'path'))
  const bytes = bytesIn(field(data, 'lines'))
  const number = field(data, 'line_number')
  if (path === undefined || bytes === undefined || typeof number !== 'number') return undefined
  const ranges = rangesIn(field(data, 'submatches'))
  return { kind, path: pathFromBytes(path), line: number, bytes: withoutEnd(bytes), ranges, isCut: false }
}

/**
 * Of an event that is too long to be parsed: its beginning has the path and the beginning of the line, and behind the line
 * come its number and the first ranges.
 */
function decodeCut({ head, tail }: CutLine): RgEvent | undefined {
  const text = Buffer.from(head).toString('latin1')
  const parts = HEAD.exec(text)
  const after = tail === undefined ? '' : Buffer.from(tail).toString('latin1')
  const number = /^\},"line_number":(\d+),/.exec(after)?.[1]
  const [, kind, pathJson = '', form, raw = ''] = parts ?? []
  const path = bytesIn(parse(Buffer.from(pathJson, 'latin1').toString()))
  if ((kind !== 'match' && kind !== 'context') || path === undefined || number === undefined) return undefined
  const bytes = form === 'text' ? decodeTextHead(raw) : Buffer.from(raw.slice(0, raw.length & ~3), 'base64')
  if (bytes === undefined) return undefined
  const ranges = [...after.matchAll(/\},"start":(\d+),"end":(\d+)\}/g)]
    .map(([, start, end]): ByteRange => [Number(start), Number(end)])
    .filter(([, end]) => end <= bytes.byteLength)
  return { kind, path: pathFromBytes(path), line: Number(number), bytes, ranges, isCut: true }
}

/** The bytes of the beginning of a JSON string, given as Latin-1, up to the last whole character. */
function decodeTextHead(raw: string): Uint8Array | undefined {
  const escaped = /^(?:[^\\]+|\\(?:u[0-9a-f]{4}|[^u]))*/i.exec(raw)?.[0] ?? ''
  const whole = escaped.replace(/[\xc0-\xff][\x80-\xbf]{0,2}$/, '')
  const text = parse(`"${Buffer.from(whole, 'latin1').toString()}"`)
  return typeof text === 'string' ? Buffer.from(text) : undefined
}

/** Text as ripgrep gives it: as such when it is UTF-8, else in base64. */
function bytesIn(value: unknown): Uint8Array | undefined {
  const text = field(value, 'text')
  if (typeof text === 'string') return Buffer.from(text)
  const encoded = field(value, 'bytes')
  return typeof encoded === 'string' ? Buffer.from(encoded, 'base64') : undefined
}

function rangesIn(value: unknown): readonly ByteRange[] {
  if (!Array.isArray(value)) return []
  return value.flatMap((match: unknown): ByteRange[] => {
    const start = field(match, 'start')
    const end = field(match, 'end')
    return typeof start === 'number' && typeof end === 'number' ? [[start, end]] : []
  })
}

function withoutEnd(bytes: Uint8Array): Uint8Array {
  let end = bytes.byteLength
  if (bytes[end - 1] === 0x0a) end -= 1
  if (end < bytes.byteLength && bytes[end - 1] === 0x0d) end -= 1
  return bytes.subarray(0, end)
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not ripgrep's: nothing can be told from it.
    return undefined
  }
}
