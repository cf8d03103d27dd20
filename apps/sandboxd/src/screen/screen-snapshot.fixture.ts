import { expect } from 'bun:test'
import type { IBuffer, IBufferCell, IBufferLine, Terminal } from '@xterm/headless'
import { inner, readExtendedAttributes, readLink } from './screen-internals.ts'
import { openTerminal, Screen } from './screen-terminal.ts'

export type Step = Uint8Array | { readonly cols: number; readonly rows: number }
export interface Size {
  readonly cols: number
  readonly rows: number
}

/** Calls back for each step, joining consecutive bytes into one. */
async function play(
  steps: readonly Step[],
  write: (bytes: Uint8Array, done: () => void) => void,
  resize: (cols: number, rows: number) => void,
): Promise<void> {
  const merged: Step[] = []
  for (const step of steps) {
    const last = merged.at(-1)
    if (step instanceof Uint8Array && last instanceof Uint8Array)
      merged.splice(-1, 1, Buffer.concat([last, step]))
    else merged.push(step)
  }
  for (const step of merged) {
    if (step instanceof Uint8Array) await new Promise<void>((resolve) => write(step, resolve))
    else resize(step.cols, step.rows)
  }
}

function feed(terminal: Terminal, steps: readonly Step[]): Promise<void> {
  return play(
    steps,
    (bytes, done) => terminal.write(bytes, done),
    (cols, rows) => terminal.resize(cols, rows),
  )
}

/** The snapshot after these steps. */
export async function draw(size: Size, steps: readonly Step[]): Promise<Uint8Array> {
  using screen = new Screen(size.cols, size.rows)
  await play(
    steps,
    (written, done) => screen.feed(written, done),
    (cols, rows) => screen.resize(cols, rows),
  )
  return await new Promise((resolve) => screen.draw(({ bytes }) => resolve(bytes)))
}

/** A joining client's terminal after the snapshot. */
export async function join(size: Size, steps: readonly Step[]): Promise<Terminal> {
  const last = steps.findLast((step): step is Size => !(step instanceof Uint8Array)) ?? size
  const terminal = openTerminal(last.cols, last.rows)
  await feed(terminal, [await draw(size, steps)])
  return terminal
}

/** All visible state of a terminal as text, for readable differences. */
function describeTerminal(terminal: Terminal): Record<string, unknown> {
  const { active, normal, alternate } = terminal.buffer
  return {
    screen: active.type,
    cursor: [Math.min(active.cursorX, terminal.cols), active.cursorY],
    base: normal.baseY,
    modes: { ...terminal.modes },
    normal: describeRows(terminal, normal),
    alternate: active.type === 'alternate' ? describeRows(terminal, alternate) : [],
  }
}

function describeRows(terminal: Terminal, buffer: IBuffer): string[] {
  // Rows above an alternate screen cannot be reached.
  const first = buffer.type === 'alternate' ? buffer.baseY : 0
  return Array.from({ length: buffer.length - first }, (_, row) => {
    const y = first + row
    const line = buffer.getLine(y)
    if (line === undefined) return ''
    const cells = Array.from({ length: terminal.cols }, (__, column) => describeCell(terminal, line, column))
    // Only a space can put the cursor after an empty cell.
    const isActive = buffer.type === terminal.buffer.active.type
    const isEdge = isActive && y === buffer.baseY + buffer.cursorY && buffer.cursorX >= terminal.cols
    const text = isEdge ? cells.with(-1, (cells.at(-1) ?? '').replace(/^ /, '·')) : cells
    return `${line.isWrapped ? '>' : '|'}${text.join(' ')}`
  })
}

/** A cell with default attributes. */
const PLAIN = '0,-1,0,-1,'

function describeCell(terminal: Terminal, line: IBufferLine, column: number): string {
  const cell = line.getCell(column)
  if (cell === undefined) return '?'
  const isEmpty = cell.getChars() === '' || isHalf(line, column, terminal.cols)
  const isSecondHalf = cell.getWidth() === 0 && !isHalf(line, column, terminal.cols)
  const text = isEmpty ? (isSecondHalf ? '<' : '·') : cell.getChars()
  const style = describeStyle(terminal, cell)
  return style === PLAIN ? text : `${text}{${style}}`
}

function describeStyle(terminal: Terminal, cell: IBufferCell): string {
  const { isUnderlined, isProtected, link, underlineStyle, underlineColor } =
    readExtendedAttributes(cell) ?? {}
  const isSet = {
    bold: cell.isBold(),
    dim: cell.isDim(),
    italic: cell.isItalic(),
    underline: isUnderlined ?? cell.isUnderline(),
    blink: cell.isBlink(),
    inverse: cell.isInverse(),
    invisible: cell.isInvisible(),
    strike: cell.isStrikethrough(),
    over: cell.isOverline(),
    protected: isProtected,
  }
  const flags = Object.entries(isSet).flatMap(([name, value]) =>
    value === true || (typeof value === 'number' && value !== 0) ? [name] : [],
  )
  const colors = [cell.getFgColorMode(), cell.getFgColor(), cell.getBgColorMode(), cell.getBgColor()]
  const line = isUnderlined === true ? [underlineStyle || 1, underlineColor] : []
  return [...colors, ...flags, ...line, readLink(terminal, link ?? 0) ?? ''].join()
}

/** Half of a wide character whose other half is gone; no sequence produces one. */
function isHalf(line: IBufferLine, column: number, cols: number): boolean {
  const isTail = (cell: IBufferCell | undefined): boolean =>
    cell !== undefined && cell.getWidth() === 0 && cell.getChars() === ''
  const cell = line.getCell(column)
  if (cell?.getWidth() === 2) return column + 1 >= cols || !isTail(line.getCell(column + 1))
  return isTail(cell) && (column === 0 || line.getCell(column - 1)?.getWidth() !== 2)
}

/** True when xterm.js lacks the last rows: an alternate screen that shrank while hidden, scrolled, and grew again. */
function isBroken({ buffer: { alternate, active }, rows }: Terminal): boolean {
  return active.type === 'alternate' && alternate.baseY + rows > alternate.length
}

/**
 * True when a terminal has hidden state that no sequence can reproduce: cells beyond the edge, which xterm.js keeps on an
 * alternate screen that became narrower, rows above one that shrank while hidden, a cursor, current or saved, after an empty
 * cell at the edge, and halves of wide characters.
 */
function hasHiddenState(terminal: Terminal): boolean {
  const { cols, rows } = terminal
  const { active, normal, alternate } = terminal.buffer
  const buffers = inner(terminal, '_core', 'buffers')
  const isTooHigh = alternate.baseY > 0 || inner(buffers, 'alt', 'lines', 'maxLength') !== rows
  const isSavedPastEnd = ['alt', 'normal'].some((name) => inner(buffers, name, 'savedX') === cols)
  const last = active.getLine(active.baseY + active.cursorY)?.getCell(cols - 1)
  const isPastEmptyCell = active.cursorX >= cols && last?.getChars() === '' && last.getWidth() > 0
  return (
    isTooHigh ||
    isSavedPastEnd ||
    isPastEmptyCell ||
    [active, normal].some((buffer) => hasOddCells(buffer, cols))
  )
}

function hasOddCells(buffer: IBuffer, cols: number): boolean {
  const columns = Array.from({ length: cols }, (_, column) => column)
  return Array.from({ length: buffer.length }, (_, y) => buffer.getLine(y)).some(
    (line) =>
      line !== undefined && (line.length > cols || columns.some((column) => isHalf(line, column, cols))),
  )
}

export async function expectSame(
  size: Size,
  before: readonly Step[],
  after: readonly Step[] = [],
): Promise<void> {
  const reference = openTerminal(size.cols, size.rows)
  await feed(reference, before)
  if (isBroken(reference)) return
  const joined = await join(size, before)
  expect(describeTerminal(joined)).toEqual(describeTerminal(reference))
  if (hasHiddenState(reference)) return
  await feed(reference, after)
  await feed(joined, after)
  expect(describeTerminal(joined)).toEqual(describeTerminal(reference))
}
