import type { IBuffer, IBufferCell, IBufferLine } from '@xterm/headless'
import { background, isMoreThanGround, type Pen } from './screen-pen.ts'

/** How a row leads to the next: by a line feed, because its text went on there, or there by force, where no text would do it. */
type Join = 'feed' | 'natural' | 'forced'

/** As wide as two cells; leaves one without a character where its half is written over. */
const WIDE = '\u3000'

/** Empty cells with one ground. */
interface Gap {
  /** Where they begin; negative where there are none. */
  readonly from: number
  readonly ground: number
  /** They are so in an empty row. */
  readonly isClean: boolean
}

const NO_GAP: Gap = { from: -1, ground: 0, isClean: true }

export interface RowsRequest {
  readonly buffer: IBuffer
  readonly cols: number
  readonly rows: number
  readonly pen: Pen
  /** A sequence that has to be read with the cursor in this row of the buffer. */
  readonly mark: { readonly y: number; readonly sequence: string } | undefined
}

/**
 * Writes rows of a buffer so that an empty terminal of the same size has the same cells, and the same rows that go on in the next.
 * Each row begins and ends with nothing set, so that the first ones can be left out. What a terminal can have but not be told
 * is half of a wide character: it becomes an empty cell.
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

  /** From the last row to the first. */
  *upwards(): Generator<string> {
    const { buffer } = this.#request
    let join: Join | undefined
    for (let y = buffer.length - 1; y >= 0; y -= 1) {
      const above = this.#joinInto(y, join)
      yield this.#write(y, join, above === 'forced')
      join = above
    }
  }

  /** How the row before `y` leads to it; `after` is how `y` leads on. */
  #joinInto(y: number, after: Join | undefined): Join {
    const { buffer, mark, cols, rows } = this.#request
    const [line, before] = [buffer.getLine(y), y === 0 ? undefined : buffer.getLine(y - 1)]
    if (line === undefined || !line.isWrapped) return 'feed'
    const startsElsewhere = after === 'forced' || mark?.y === y || this.#hasStyledGap(line, cols - 1)
    const first = line.getCell(0, this.#cell)
    const goesOn =
      before !== undefined &&
      first !== undefined &&
      first.getChars() !== '' &&
      first.getWidth() > 0 &&
      // A line that scrolls in has the ground of what is written.
      background(first) === 0 &&
      !this.#isGap(line, 0) &&
      !this.#isGap(before, cols - 1)
    if (goesOn && !startsElsewhere) return 'natural'
    // With a single row the one that was left is out of reach.
    return rows > 1 ? 'forced' : 'feed'
  }

  #write(y: number, join: Join | undefined, isForcedInto: boolean): string {
    const { buffer, cols, mark } = this.#request
    const line = buffer.getLine(y)
    if (line === undefined) return ''
    /** Columns that something was put into which does not belong there. */
    const stained = new Set(isForcedInto ? [0] : [])
    let text = mark?.y === y ? `${mark.sequence}\r` : ''
    if (join === 'forced') {
      text += `\x1b[${cols}G  \x1b[A\r`
      stained.add(cols - 1)
    }
    let end = cols
    for (; end > 1 && this.#hasStyledGap(line, end - 1); end -= 1) text += this.#writeLastGap(line, end - 1)
    if (end < cols) {
      text += '\r'
      stained.add(end - 1)
    }
    text += this.#writeCells(line, end, stained) + this.#pen.reset()
    if (join === 'feed') return `${text}\r\n`
    return join === 'forced' ? `${text}\r\x1b[B` : text
  }

  #writeCells(line: IBufferLine, end: number, stained: ReadonlySet<number>): string {
    let text = ''
    /** Columns before this one need nothing more; between it and the cursor are empty cells. */
    let done = 0
    let gap = NO_GAP
    let stain = -1
    for (let column = 0; column < end; column += 1) {
      const cell = line.getCell(column, this.#cell)
      if (cell === undefined) break
      const chars = cell.getChars()
      const width = cell.getWidth()
      if (width === 1 ? chars === '' : this.#isHalf(line, column, width, chars)) {
        const ground = cell.isAttributeDefault() ? 0 : background(cell)
        const isClean = column !== stain && !stained.has(column)
        if (isMoreThanGround(cell) && column + 1 < end) {
          text += this.#endGap(gap, column, done) + this.#writeGap(column)
          gap = NO_GAP
          done = column + 1
          stain = column + 1
        } else if (gap.from >= 0 && gap.ground === ground) {
          if (!isClean) gap = { ...gap, isClean }
        } else {
          const erased = this.#eraseGap(gap, column, done)
          text += erased
          if (erased !== '') done = gap.from
          gap = { from: column, ground, isClean: isClean && ground === 0 }
        }
      } else if (chars !== '') {
        text += this.#endGap(gap, column, done) + this.#writeCharacter(cell, column)
        gap = NO_GAP
        done = column + Math.max(1, width)
      }
    }
    return text + this.#eraseGap(gap, end, done)
  }

  /** Erases empty cells that are not so by themselves; leaves the cursor where they begin. */
  #eraseGap({ from, ground, isClean }: Gap, to: number, done: number): string {
    if (from < 0 || isClean) return ''
    return `${forward(from - done)}${this.#pen.takeGround(ground)}\x1b[${to - from}X`
  }

  /** The same, and goes on to the next cell. */
  #endGap(gap: Gap, to: number, done: number): string {
    const erased = this.#eraseGap(gap, to, done)
    return erased + forward(to - (erased === '' ? done : gap.from))
  }

  #writeCharacter(cell: IBufferCell, column: number): string {
    // A mark that stands alone must not join what was written before it.
    const separator = cell.getWidth() === 0 ? `\x1b[${column + 1}G` : ''
    return this.#pen.take(cell) + separator + cell.getChars()
  }

  /** Leaves an empty cell with all its attributes: half of a wide character whose other half is written over. */
  #writeGap(column: number): string {
    return `${this.#pen.take(this.#cell)}${WIDE}\x1b[${column + 2}G \x1b[${column + 2}G`
  }

  /** The same at the end of a row, from the other side. */
  #writeLastGap(line: IBufferLine, column: number): string {
    const cell = line.getCell(column, this.#cell)
    if (cell === undefined) return ''
    const before = `\x1b[${column}G`
    return `${before}${this.#pen.take(cell)}${WIDE}${before} `
  }

  #hasStyledGap(line: IBufferLine, column: number): boolean {
    if (!this.#isGap(line, column)) return false
    const cell = line.getCell(column, this.#next)
    return cell !== undefined && isMoreThanGround(cell)
  }

  /** Whether a cell has no character: an empty one, or half of one whose other half is gone. */
  #isGap(line: IBufferLine, column: number): boolean {
    const cell = line.getCell(column, this.#next)
    if (cell === undefined) return true
    const [width, chars] = [cell.getWidth(), cell.getChars()]
    return width === 1 ? chars === '' : this.#isHalf(line, column, width, chars)
  }

  #isHalf(line: IBufferLine, column: number, width: number, chars: string): boolean {
    if (width === 2) return column + 1 >= this.#request.cols || !isTail(line.getCell(column + 1, this.#next))
    // An empty cell without width is the second half, if the first is there.
    return chars === '' && (column === 0 || line.getCell(column - 1, this.#next)?.getWidth() !== 2)
  }
}

function isTail(cell: IBufferCell | undefined): boolean {
  return cell !== undefined && cell.getWidth() === 0 && cell.getChars() === ''
}

function forward(columns: number): string {
  return columns === 0 ? '' : `\x1b[${columns}C`
}
