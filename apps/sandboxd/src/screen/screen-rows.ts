import type { IBuffer, IBufferCell, IBufferLine } from '@xterm/headless'
import { backgroundOf, hasMoreThanBackground, type Pen } from './screen-pen.ts'

/** How a row continues in the next: by a line feed, by text that wraps, or by a forced wrap where no text would wrap. */
type Join = 'feed' | 'natural' | 'forced'

/** Two cells wide; overwriting one half leaves the other empty. */
const WIDE = '\u3000'

/** Empty cells with one background color. */
interface Gap {
  /** First column; negative when there are none. */
  readonly from: number
  readonly background: number
  /** An empty row already has them like this. */
  readonly isClean: boolean
}

const NO_GAP: Gap = { from: -1, background: 0, isClean: true }

export interface RowsRequest {
  readonly buffer: IBuffer
  readonly cols: number
  readonly rows: number
  readonly pen: Pen
  /** A sequence to write while the cursor is in this row of the buffer. */
  readonly mark: { readonly y: number; readonly sequence: string } | undefined
}

/**
 * Writes rows of a buffer so that an empty terminal of the same size gets the same cells and the same wrapped lines. Each row
 * starts and ends with the default style, so that the first rows can be omitted. Half of a wide character, which no sequence
 * produces, becomes an empty cell.
 */
export class RowWriter {
  readonly #request: RowsRequest
  readonly #pen: Pen
  readonly #cell: IBufferCell
  readonly #next: IBufferCell

  constructor(request: RowsRequest) {
    this.#request = request
    this.#pen = request.pen
    this.#cell = request.buffer.getNullCell()
    this.#next = request.buffer.getNullCell()
  }

  /** Yields rows from the last to the first. */
  *upwards(): Generator<string> {
    const { buffer } = this.#request
    let join: Join | undefined
    for (let y = buffer.length - 1; y >= 0; y -= 1) {
      const above = this.#joinInto(y, join)
      yield this.#write(y, join, above === 'forced')
      join = above
    }
  }

  /** How the row before `y` continues in it; `after` is how `y` itself continues. */
  #joinInto(y: number, after: Join | undefined): Join {
    const { buffer, mark, cols, rows } = this.#request
    const [line, before] = [buffer.getLine(y), y === 0 ? undefined : buffer.getLine(y - 1)]
    if (line === undefined || !line.isWrapped) return 'feed'
    const cannotWrap = after === 'forced' || mark?.y === y || this.#hasStyledGap(line, cols - 1)
    const first = line.getCell(0, this.#cell)
    const wraps =
      before !== undefined &&
      first !== undefined &&
      first.getChars() !== '' &&
      first.getWidth() > 0 &&
      // A line that scrolls in has the current background color.
      backgroundOf(first) === 0 &&
      !this.#isGap(line, 0) &&
      !this.#isGap(before, cols - 1)
    if (wraps && !cannotWrap) return 'natural'
    // With a single row, the previous one can no longer be reached.
    return rows > 1 ? 'forced' : 'feed'
  }

  #write(y: number, join: Join | undefined, isForcedInto: boolean): string {
    const { buffer, cols, mark } = this.#request
    const line = buffer.getLine(y)
    if (line === undefined) return ''
    /** Columns with a character that must be erased or overwritten. */
    const dirty = new Set(isForcedInto ? [0] : [])
    let text = mark?.y === y ? `${mark.sequence}\r` : ''
    if (join === 'forced') {
      text += `\x1b[${cols}G  \x1b[A\r`
      dirty.add(cols - 1)
    }
    let end = cols
    for (; end > 1 && this.#hasStyledGap(line, end - 1); end -= 1) text += this.#writeLastGap(line, end - 1)
    if (end < cols) {
      text += '\r'
      dirty.add(end - 1)
    }
    text += this.#writeCells(line, end, dirty) + this.#pen.reset()
    if (join === 'feed') return `${text}\r\n`
    return join === 'forced' ? `${text}\r\x1b[B` : text
  }

  #writeCells(line: IBufferLine, end: number, dirty: ReadonlySet<number>): string {
    let text = ''
    /** Columns before this one are complete; between it and the cursor are empty cells. */
    let done = 0
    let gap = NO_GAP
    let dirtyColumn = -1
    for (let column = 0; column < end; column += 1) {
      const cell = line.getCell(column, this.#cell)
      if (cell === undefined) break
      const chars = cell.getChars()
      const width = cell.getWidth()
      if (width === 1 ? chars === '' : this.#isHalf(line, column, width, chars)) {
        const background = cell.isAttributeDefault() ? 0 : backgroundOf(cell)
        const isClean = column !== dirtyColumn && !dirty.has(column)
        if (hasMoreThanBackground(cell) && column + 1 < end) {
          text += this.#endGap(gap, column, done) + this.#writeGap(column)
          gap = NO_GAP
          done = column + 1
          dirtyColumn = column + 1
        } else if (gap.from >= 0 && gap.background === background) {
          if (!isClean) gap = { ...gap, isClean }
        } else {
          const erased = this.#eraseGap(gap, column, done)
          text += erased
          if (erased !== '') done = gap.from
          gap = { from: column, background, isClean: isClean && background === 0 }
        }
      } else if (chars !== '') {
        text += this.#endGap(gap, column, done) + this.#writeCharacter(cell, column)
        gap = NO_GAP
        done = column + Math.max(1, width)
      }
    }
    return text + this.#eraseGap(gap, end, done)
  }

  /** Erases empty cells, unless they are clean; leaves the cursor at their start. */
  #eraseGap({ from, background, isClean }: Gap, to: number, done: number): string {
    if (from < 0 || isClean) return ''
    return `${forward(from - done)}${this.#pen.takeBackground(background)}\x1b[${to - from}X`
  }

  /** The same, and moves to the next cell. */
  #endGap(gap: Gap, to: number, done: number): string {
    const erased = this.#eraseGap(gap, to, done)
    return erased + forward(to - (erased === '' ? done : gap.from))
  }

  #writeCharacter(cell: IBufferCell, column: number): string {
    // A combining mark in a cell of its own must not join the character before it.
    const separator = cell.getWidth() === 0 ? `\x1b[${column + 1}G` : ''
    return this.#pen.take(cell) + separator + cell.getChars()
  }

  /** Writes an empty cell with all its attributes: half of a wide character whose other half is overwritten. */
  #writeGap(column: number): string {
    return `${this.#pen.take(this.#cell)}${WIDE}\x1b[${column + 2}G \x1b[${column + 2}G`
  }

  /** The same in the last column, with the other half. */
  #writeLastGap(line: IBufferLine, column: number): string {
    const cell = line.getCell(column, this.#cell)
    if (cell === undefined) return ''
    const before = `\x1b[${column}G`
    return `${before}${this.#pen.take(cell)}${WIDE}${before} `
  }

  #hasStyledGap(line: IBufferLine, column: number): boolean {
    if (!this.#isGap(line, column)) return false
    const cell = line.getCell(column, this.#next)
    return cell !== undefined && hasMoreThanBackground(cell)
  }

  /** True for a cell without a character: empty, or half of a wide character whose other half is gone. */
  #isGap(line: IBufferLine, column: number): boolean {
    const cell = line.getCell(column, this.#next)
    if (cell === undefined) return true
    const [width, chars] = [cell.getWidth(), cell.getChars()]
    return width === 1 ? chars === '' : this.#isHalf(line, column, width, chars)
  }

  #isHalf(line: IBufferLine, column: number, width: number, chars: string): boolean {
    if (width === 2) return column + 1 >= this.#request.cols || !isTail(line.getCell(column + 1, this.#next))
    // An empty cell of width 0 is a second half, if the first one precedes it.
    return chars === '' && (column === 0 || line.getCell(column - 1, this.#next)?.getWidth() !== 2)
  }
}

function isTail(cell: IBufferCell | undefined): boolean {
  return cell !== undefined && cell.getWidth() === 0 && cell.getChars() === ''
}

function forward(columns: number): string {
  return columns === 0 ? '' : `\x1b[${columns}C`
}
