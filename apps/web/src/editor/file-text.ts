import { Text } from '@codemirror/state'

const MARK = '\u{feff}'

/** Lines of a text, whatever they end with. */
export function linesOf(text: string): Text {
  return Text.of(text.split(/\r\n?|\n/))
}

/** What is in a file around and between its lines, which nobody types. */
interface Frame {
  /** Byte order mark, or nothing. */
  readonly mark: string
  readonly separator: '\r\n' | '\n'
  /** There are several kinds of ends: all but one are parts of their lines. */
  readonly isMixed: boolean
}

function frameOf(whole: string): Frame {
  const hasReturns = whole.includes('\r')
  const isWindows = hasReturns && !/\r(?!\n)|(?<!\r)\n/.test(whole)
  return {
    mark: whole.startsWith(MARK) ? MARK : '',
    separator: isWindows ? '\r\n' : '\n',
    isMixed: hasReturns && !isWindows,
  }
}

/**
 * A file's text as an editor holds it. What comes of it by a change shares all else with it, so that comparing the two costs no
 * more than the change; the whole is put together only when it is asked for.
 */
export class FileText {
  readonly lines: Text
  readonly #frame: Frame

  private constructor(lines: Text, frame: Frame) {
    this.lines = lines
    this.#frame = frame
  }

  static of(whole: string): FileText {
    const frame = frameOf(whole)
    return new FileText(Text.of(whole.slice(frame.mark.length).split(frame.separator)), frame)
  }

  /** Whether a return in it is no end of a line. */
  get isMixed(): boolean {
    return this.#frame.isMixed
  }

  /** What its lines end with; undefined when there is only one. */
  get ends(): 'CRLF' | 'LF' | 'mixed' | undefined {
    if (this.isMixed) return 'mixed'
    if (this.lines.lines === 1) return undefined
    return this.#frame.separator === '\n' ? 'LF' : 'CRLF'
  }

  /** Whether it begins with a byte order mark. */
  get hasMark(): boolean {
    return this.#frame.mark !== ''
  }

  /** Whether the lines of both are the same, whatever they end with. */
  hasLinesOf(other: FileText): boolean {
    return this.#plainLines.eq(other.#plainLines)
  }

  get #plainLines(): Text {
    return this.isMixed ? linesOf(this.lines.toString()) : this.lines
  }

  /** The same file with other lines. */
  withLines(lines: Text): FileText {
    return lines === this.lines ? this : new FileText(lines, this.#frame)
  }

  /** Whether both are the same in a file. */
  equals(other: FileText): boolean {
    const [mine, theirs] = [this.#frame, other.#frame]
    if (mine.mark !== theirs.mark) return false
    if (mine.separator === theirs.separator) return this.lines.eq(other.lines)
    return this.toString() === other.toString()
  }

  /** All of it, as it is in the file. */
  toString(): string {
    return this.#frame.mark + this.lines.sliceString(0, this.lines.length, this.#frame.separator)
  }
}
