import { Text } from '@codemirror/state'

const MARK = '\u{feff}'

/** Splits a text at any kind of line ending. */
export function linesOf(text: string): Text {
  return Text.of(text.split(/\r\n?|\n/))
}

/** The parts of a file that are not typed: byte order mark and line endings. */
interface Frame {
  /** Byte order mark, or empty. */
  readonly mark: string
  readonly separator: '\r\n' | '\n'
  /** The file mixes line endings: all but one kind are kept inside the lines. */
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
 * A file's text as the editor holds it. Edited versions share their unchanged lines, so that comparing two costs no
 * more than the change. The whole string is built only on demand.
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

  /** True when carriage returns are part of lines. */
  get isMixed(): boolean {
    return this.#frame.isMixed
  }

  /** Kind of line ending; undefined for a single line. */
  get ends(): 'CRLF' | 'LF' | 'mixed' | undefined {
    if (this.isMixed) return 'mixed'
    if (this.lines.lines === 1) return undefined
    return this.#frame.separator === '\n' ? 'LF' : 'CRLF'
  }

  get hasMark(): boolean {
    return this.#frame.mark !== ''
  }

  /** True when the lines are equal, ignoring line endings. */
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

  /** True when both would be saved as the same bytes. */
  equals(other: FileText): boolean {
    const [mine, theirs] = [this.#frame, other.#frame]
    if (mine.mark !== theirs.mark) return false
    if (mine.separator === theirs.separator) return this.lines.eq(other.lines)
    return this.toString() === other.toString()
  }

  /** The whole file as a string. */
  toString(): string {
    return this.#frame.mark + this.lines.sliceString(0, this.lines.length, this.#frame.separator)
  }
}
