import { pathFromBytes } from '@sandwire/protocol'
import type { FoundLine, RgEvent } from './rg-output.ts'

/** A matching line with its context. */
export interface Match extends MatchText {
  readonly path: string
  readonly line: number
  /** Context lines, up to the next match: a matching line is not context. */
  readonly before: readonly string[]
  readonly after: readonly string[]
}

/** Adds context lines to matches; ripgrep reports them separately, and one may belong to two matches. */
export class MatchGroups {
  readonly #context: number
  /** The latest non-matching lines, at most `context`. */
  #recent: FoundLine[] = []
  #open: { readonly match: Match; readonly after: string[] } | undefined

  constructor(context: number) {
    this.#context = context
  }

  /** Returns the match that an event completes, if any. */
  push(event: RgEvent): Match | undefined {
    switch (event.kind) {
      case 'context':
        return this.#pushContext(event)
      case 'match':
        return this.#pushMatch(event)
      case 'file-end':
      case 'summary':
        this.#recent = []
        return this.#take()
    }
  }

  #pushContext(line: FoundLine): Match | undefined {
    this.#recent = [...this.#recent, line].slice(-this.#context)
    if (this.#open === undefined || line.line - this.#open.match.line > this.#context) return this.#take()
    this.#open.after.push(describeLine(line).text)
    return this.#open.after.length >= this.#context ? this.#take() : undefined
  }

  #pushMatch(line: FoundLine): Match | undefined {
    const before = this.#recent
      .filter((near) => near.line < line.line && line.line - near.line <= this.#context)
      .map((near) => describeLine(near).text)
    const after: string[] = []
    const done = this.#take()
    this.#recent = []
    this.#open = { match: { path: line.path, line: line.line, ...describeLine(line), before, after }, after }
    // Without context lines a match is complete at once.
    return this.#context === 0 ? this.#take() : done
  }

  #take(): Match | undefined {
    const match = this.#open?.match
    this.#open = undefined
    return match
  }
}

/** A matching line as the API reports it. */
interface MatchText {
  /** Bytes that are not UTF-8 are represented as in paths. */
  readonly text: string
  /** Positions in `text`, in UTF-16 units. */
  readonly ranges: readonly (readonly [number, number])[]
  /** The line continues before or after `text`. */
  readonly isCut: boolean
}

/** Bytes of a line that are reported: about a screenful. */
export const MAX_TEXT_BYTES = 2_000
/** Bytes before the first match in a truncated line. */
const LEAD_BYTES = 200

/** Returns the text of a line and the positions of its matches; of a long line, the part around its first match. */
export function describeLine({ bytes, ranges, isCut }: FoundLine): MatchText {
  const isLong = bytes.byteLength > MAX_TEXT_BYTES
  const from = isLong ? edge(bytes, Math.max(0, (ranges[0]?.[0] ?? 0) - LEAD_BYTES)) : 0
  const to = isLong ? edge(bytes, Math.min(bytes.byteLength, from + MAX_TEXT_BYTES)) : bytes.byteLength
  const inside = ranges.filter(
    ([start, end]) => start >= from && start <= to && (start < to || end === start),
  )
  const text = new Pieces(bytes, from)
  const placed = inside.map(([start, end]): readonly [number, number] => [
    text.upTo(Math.min(start, to)),
    text.upTo(Math.min(end, to)),
  ])
  text.upTo(to)
  return { text: text.text, ranges: placed, isCut: isCut || isLong }
}

/** Start of the UTF-8 character at a position. */
function edge(bytes: Uint8Array, at: number): number {
  let start = at
  // A UTF-8 character has at most four bytes.
  while (start > 0 && at - start < 3 && (bytes[start] ?? 0) >> 6 === 0b10) start -= 1
  return (bytes[start] ?? 0) >> 6 === 0b10 ? at : start
}

/** Decodes text piece by piece to map byte positions to string positions. */
class Pieces {
  readonly #bytes: Uint8Array
  #at: number
  text = ''

  constructor(bytes: Uint8Array, from: number) {
    this.#bytes = bytes
    this.#at = from
  }

  upTo(position: number): number {
    if (position > this.#at) {
      this.text += pathFromBytes(this.#bytes.subarray(this.#at, position))
      this.#at = position
    }
    return this.text.length
  }
}
