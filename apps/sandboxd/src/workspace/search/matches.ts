import { pathFromBytes } from '@sandwire/protocol'
import type { FoundLine, RgEvent } from './rg-output.ts'

/** A line that was found, with what is around it. */
export interface Match extends MatchText {
  readonly path: string
  readonly line: number
  /** Lines before and after it, up to the next match: a line that was found stands for itself. */
  readonly before: readonly string[]
  readonly after: readonly string[]
}

/** Gives every match the lines around it, which ripgrep tells on their own: one may be around two matches. */
export class MatchGroups {
  readonly #context: number
  /** The last lines that were no match, at most `context`. */
  #recent: FoundLine[] = []
  #open: { readonly match: Match; readonly after: string[] } | undefined

  constructor(context: number) {
    this.#context = context
  }

  /** The match that an event completes, if it does. */
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
    // Without lines around it there is nothing to wait for, and none before it that still does.
    return this.#context === 0 ? this.#take() : done
  }

  #take(): Match | undefined {
    const match = this.#open?.match
    this.#open = undefined
    return match
  }
}

/** A found line as it is told. */
interface MatchText {
  /** Bytes that are not UTF-8 stand as in paths. */
  readonly text: string
  /** Positions in `text`, in UTF-16 units. */
  readonly ranges: readonly (readonly [number, number])[]
  /** The line goes on before or behind `text`. */
  readonly isCut: boolean
}

/** Most of a line that is told, in bytes: about what fits on a screen. */
export const MAX_TEXT_BYTES = 2_000
/** What is told before the first match of a line that is cut. */
const LEAD_BYTES = 200

/** The text of a line and where its matches are in it. Of a long line, what is around its first match. */
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

/** The beginning of the character that a position is in. */
function edge(bytes: Uint8Array, at: number): number {
  let start = at
  // Four bytes are the longest character; what is longer is none.
  while (start > 0 && at - start < 3 && (bytes[start] ?? 0) >> 6 === 0b10) start -= 1
  return (bytes[start] ?? 0) >> 6 === 0b10 ? at : start
}

/** Text made piece by piece, so that a position in bytes has one in the text, also in the middle of a character. */
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
