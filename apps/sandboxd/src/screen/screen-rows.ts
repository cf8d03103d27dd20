import type { IBuffer, IBufferCell, IBufferLine } from '@xterm/headless'
import { backgroundOf, hasMoreThanBackground, type Pen } from './screen-pen.ts'

/** How a row continues in the next: by a line feed, by text that wraps, or by a forced wrap where no text would wrap. */
type Join = 'feed' | 'natural' | 'forced'

/** Two cells wide; overwriting one half leaves the other empty. */
const WIDE = '\u3000'

/** Empty cells with one background color. */
interface BlankRun {
  /** First column; negative when there are none. */
  readonly from: number
  readonly background: number
  /** True if an untouched row has the same cells, so that nothing must be written. */
  readonly isClean: boolean
}

const NO_BLANKS: BlankRun = { from: -1, background: 0, isClean: true }

export interface RowsRequest {
  readonly buffer: IBuffer
  readonly cols: number
  readonly rows: number
  readonly pen: Pen
  /** The sequence that saves the cursor, and the row of the buffer in which it must be written. */
  readonly savedCursor: { readonly y: number; readonly sequence: string } | undefined
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
  readonly #scratch: IBufferCell

  constructor(request: RowsRequest) {
    this.#request = request
    this.#pen = request.pen
    this.#cell = request.buffer.getNullCell()
    this.#scratch = request.buffer.getNullCell()
  }

  /** Yields rows from the last to the first. */
  *upwards(): Generator<string> {
    const { buffer } = this.#request
    let join: Join | undefined
    for (let y = buffer.length - 1; y >= 0; y -= 1) {
      const above = this.#joinBefore(y, join)
      yield this.#write(y, join, above === 'forced')
      join = above
    }
  }

  /** How the row before `y` continues in it; `after` is how `y` itself continues. */
  #joinBefore(y: number, after: Join | undefined): Join {
    const { buffer, savedCursor, cols, rows } = this.#request
    const [line, before] = [buffer.getLine(y), y === 0 ? undefined : buffer.getLine(y - 1)]
    if (line === undefined || !line.isWrapped) return 'feed'
    const cannotWrap = after === 'forced' || savedCursor?.y === y || this.#isStyledBlank(line, cols - 1)
    const first = line.getCell(0, this.#cell)
    const wraps =
      before !== undefined &&
      first !== undefined &&
      first.getChars() !== '' &&
      first.getWidth() > 0 &&
      // A line that scrolls in has the current background color.
      backgroundOf(first) === 0 &&
      !this.#isBlank(line, 0) &&
      !this.#isBlank(before, cols - 1)
    if (wraps && !cannotWrap) return 'natural'
    // A forced wrap moves the cursor up again, which a terminal with a single row cannot do.
    return rows > 1 ? 'forced' : 'feed'
  }

  #write(y: number, join: Join | undefined, isForcedInto: boolean): string {
    const { buffer, cols, savedCursor } = this.#request
    const line = buffer.getLine(y)
    if (line === undefined) return ''
    /** Columns with a character that must be erased or overwritten. */
    const dirty = new Set(isForcedInto ? [0] : [])
    let text = savedCursor?.y === y ? `${savedCursor.sequence}\r` : ''
    if (join === 'forced') {
      text += `\x1b[${cols}G  \x1b[A\r`
      dirty.add(cols - 1)
    }
    let end = cols
    for (; end > 1 && this.#isStyledBlank(line, end - 1); end -= 1)
      text += this.#writeStyledBlankInLastColumn(line, end - 1)
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
    /** Columns before this one are complete; the cursor is in this one. */
    let writtenColumns = 0
    let blanks = NO_BLANKS
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
          text += this.#eraseBlanksAndAdvance(blanks, column, writtenColumns) + this.#writeStyledBlank(column)
          blanks = NO_BLANKS
          writtenColumns = column + 1
          dirtyColumn = column + 1
        } else if (blanks.from >= 0 && blanks.background === background) {
          if (!isClean) blanks = { ...blanks, isClean }
        } else {
          const erased = this.#eraseBlanks(blanks, column, writtenColumns)
          text += erased
          if (erased !== '') writtenColumns = blanks.from
          blanks = { from: column, background, isClean: isClean && background === 0 }
        }
      } else if (chars !== '') {
        text +=
          this.#eraseBlanksAndAdvance(blanks, column, writtenColumns) + this.#writeCharacter(cell, column)
        blanks = NO_BLANKS
        writtenColumns = column + Math.max(1, width)
      }
    }
    return text + this.#eraseBlanks(blanks, end, writtenColumns)
  }

  /** Erases empty cells, unless they are clean; leaves the cursor at their start. */
  #eraseBlanks({ from, background, isClean }: BlankRun, to: number, writtenColumns: number): string {
    if (from < 0 || isClean) return ''
    return `${forward(from - writtenColumns)}${this.#pen.takeBackground(background)}\x1b[${to - from}X`
  }

  /** Like `#eraseBlanks`, and moves the cursor to the cell after them. */
  #eraseBlanksAndAdvance(blanks: BlankRun, to: number, writtenColumns: number): string {
    const erased = this.#eraseBlanks(blanks, to, writtenColumns)
    return erased + forward(to - (erased === '' ? writtenColumns : blanks.from))
  }

  #writeCharacter(cell: IBufferCell, column: number): string {
    // A combining mark in a cell of its own must not join the character before it.
    const separator = cell.getWidth() === 0 ? `\x1b[${column + 1}G` : ''
    return this.#pen.take(cell) + separator + cell.getChars()
  }

  /** Writes an empty cell with all its attributes: half of a wide character whose other half is overwritten. */
  #writeStyledBlank(column: number): string {
    return `${this.#pen.take(this.#cell)}${WIDE}\x1b[${column + 2}G \x1b[${column + 2}G`
  }

  /** For the last columns, from right to left: the wide character starts one column earlier and its first half is overwritten. */
  #writeStyledBlankInLastColumn(line: IBufferLine, column: number): string {
    const cell = line.getCell(column, this.#cell)
    if (cell === undefined) return ''
    const before = `\x1b[${column}G`
    return `${before}${this.#pen.take(cell)}${WIDE}${before} `
  }

  #isStyledBlank(line: IBufferLine, column: number): boolean {
    if (!this.#isBlank(line, column)) return false
    const cell = line.getCell(column, this.#scratch)
    return cell !== undefined && hasMoreThanBackground(cell)
  }

  /** True for a cell without a character: empty, or half of a wide character whose other half is gone. */
  #isBlank(line: IBufferLine, column: number): boolean {
    const cell = line.getCell(column, this.#scratch)
    if (cell === undefined) return true
    const [width, chars] = [cell.getWidth(), cell.getChars()]
    return width === 1 ? chars === '' : this.#isHalf(line, column, width, chars)
  }

  #isHalf(line: IBufferLine, column: number, width: number, chars: string): boolean {
    if (width === 2)
      return column + 1 >= this.#request.cols || !isTail(line.getCell(column + 1, this.#scratch))
    // An empty cell of width 0 is a second half, if the first one precedes it.
    return chars === '' && (column === 0 || line.getCell(column - 1, this.#scratch)?.getWidth() !== 2)
  }
}

function isTail(cell: IBufferCell | undefined): boolean {
  return cell !== undefined && cell.getWidth() === 0 && cell.getChars() === ''
}

function forward(columns: number): string {
  return columns === 0 ? '' : `\x1b[${columns}C`
}
