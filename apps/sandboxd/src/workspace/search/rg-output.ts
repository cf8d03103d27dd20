import { pathFromBytes } from '@sandwire/protocol'

/** The stored parts of a line over the limit. */
interface CutLine {
  readonly head: Uint8Array
  /** From the marker on; undefined when there is none after `head`. */
  readonly tail: Uint8Array | undefined
}

export type RgLine = Uint8Array | CutLine

export interface LineLimits {
  /** Longest line that is stored whole. */
  readonly maxBytes: number
  /** Bytes stored of a longer line from its start and from its marker. */
  readonly keptBytes: number
}

const NEWLINE = 0x0a

/**
 * Splits a byte stream into lines with bounded memory: of a line over the limit only its start and what follows the first
 * `marker` are stored.
 */
export class RgLines {
  readonly #limits: LineLimits
  readonly #marker: Uint8Array
  /** The line so far, while it is within the limit. */
  #pieces: Uint8Array[] = []
  #bytes = 0
  /** Set once the line is too long. */
  #long: LongLine | undefined

  constructor(limits: LineLimits, marker: string) {
    this.#limits = limits
    this.#marker = Buffer.from(marker)
  }

  /** Returns the lines that a chunk completes. */
  *push(chunk: Uint8Array): Generator<RgLine> {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from)
      this.#add(chunk.subarray(from, end < 0 ? chunk.byteLength : end))
      if (end < 0) return
      yield this.#take()
      from = end + 1
    }
  }

  #add(piece: Uint8Array): void {
    this.#bytes += piece.byteLength
    if (this.#long !== undefined) this.#long.add(piece)
    else this.#pieces.push(piece)
    if (this.#long !== undefined || this.#bytes <= this.#limits.maxBytes) return
    this.#long = new LongLine(this.#limits.keptBytes, this.#marker)
    for (const kept of this.#pieces) this.#long.add(kept)
    this.#pieces = []
  }

  #take(): RgLine {
    const line = this.#long?.take() ?? join(this.#pieces)
    this.#pieces = []
    this.#bytes = 0
    this.#long = undefined
    return line
  }
}

/** A line over the limit. */
class LongLine {
  readonly #keptBytes: number
  readonly #marker: Uint8Array
  #head: Uint8Array = new Uint8Array()
  /** End of the searched bytes: the marker may start there. */
  #overlap: Uint8Array = new Uint8Array()
  #tail: Uint8Array | undefined

  constructor(keptBytes: number, marker: Uint8Array) {
    this.#keptBytes = keptBytes
    this.#marker = marker
  }

  add(piece: Uint8Array): void {
    const room = this.#keptBytes - this.#head.byteLength
    if (room > 0) this.#head = join([this.#head, piece.subarray(0, room)])
    this.#seek(piece.subarray(Math.max(room, 0)))
  }

  #seek(piece: Uint8Array): void {
    if (this.#tail !== undefined) {
      const room = this.#keptBytes - this.#tail.byteLength
      if (room > 0) this.#tail = join([this.#tail, piece.subarray(0, room)])
      return
    }
    const seen = Buffer.concat([this.#overlap, piece])
    const at = seen.indexOf(this.#marker)
    if (at >= 0) this.#tail = seen.subarray(at, at + this.#keptBytes).slice()
    else this.#overlap = seen.subarray(-(this.#marker.byteLength - 1)).slice()
  }

  take(): CutLine {
    return { head: this.#head, tail: this.#tail }
  }
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces)
}

/** Byte range of a match in its line. */
export type ByteRange = readonly [start: number, end: number]

/** A matching line or a context line. */
export interface FoundLine {
  readonly kind: 'match' | 'context'
  readonly path: string
  readonly line: number
  /** The line without its line break, or the start of a very long one. */
  readonly bytes: Uint8Array
  readonly ranges: readonly ByteRange[]
  /** `bytes` is only a part of the line. */
  readonly isCut: boolean
}

/** One JSON event of ripgrep. */
export type RgEvent =
  | FoundLine
  | { readonly kind: 'file-end' }
  /** The last event; without it ripgrep was killed. */
  | { readonly kind: 'summary' }

/** Follows the text of a line in the JSON. Quotes in the text are escaped, so it occurs only there. */
export const AFTER_TEXT = '},"line_number":'

/** The start of an event up to its line's text. */
const HEAD =
  /^\{"type":"(match|context)","data":\{"path":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\}),"lines":\{"(text|bytes)":"(.*)$/s

/** Decodes an event of ripgrep; undefined for events that are not needed or not understood. */
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
 * Decodes an event that is too long to parse: `head` has the path and the start of the line, `tail` its number and the first
 * ranges.
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

/** Decodes the start of a JSON string (Latin-1) up to the last whole character. */
function decodeTextHead(raw: string): Uint8Array | undefined {
  const escaped = /^(?:[^\\]+|\\(?:u[0-9a-f]{4}|[^u]))*/i.exec(raw)?.[0] ?? ''
  const whole = escaped.replace(/[\xc0-\xff][\x80-\xbf]{0,2}$/, '')
  const text = parse(`"${Buffer.from(whole, 'latin1').toString()}"`)
  return typeof text === 'string' ? Buffer.from(text) : undefined
}

/** Ripgrep's text fields: a string when UTF-8, otherwise base64. */
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
    // Not an event of ripgrep.
    return undefined
  }
}
