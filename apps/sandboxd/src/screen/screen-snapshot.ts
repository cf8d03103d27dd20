import type { IBufferCell, Terminal } from '@xterm/headless'
import {
  isAfterCharacter,
  readCharsets,
  readLink,
  readNextStyle,
  readNextUnderlineColor,
  readScreenMemory,
  type SavedCursor,
  type ScreenMemory,
} from './screen-internals.ts'
import type { ScreenModes } from './screen-modes.ts'
import { background, Pen, underlineColorSequence } from './screen-pen.ts'
import { RowWriter } from './screen-rows.ts'

const encoder = new TextEncoder()
const NORMAL_SCREEN = '\x1b[?1047l'
/** Most terminals have one pair of margins for both screens. */
const ALTERNATE_SCREEN = '\x1b[?1047h\x1b[r\x1b[2J\x1b[H'
const SAVE_CURSOR = '\x1b7'
const RESTORE_CURSOR = '\x1b8'
/** Ends a string where there is none: only keeps a mark that comes next from joining what was written. */
const NOTHING = '\x1b\\'
const DESIGNATORS = ['(', ')', '*', '+']
const SHIFTS = ['\x0f', '\x0e', '\x1bn', '\x1bo']
const ASCII = 'B'
/** Room for what may have to be said before the first row. */
const OPENING_BYTES = 32
const MOUSE_MODES = {
  none: '',
  x10: '\x1b[?9h',
  vt200: '\x1b[?1000h',
  drag: '\x1b[?1002h',
  any: '\x1b[?1003h',
}

/** Where a screen is drawn to. */
export interface SnapshotRequest {
  readonly maxBytes: number
  /** Characters without their colors, for a screen that would not fit with them. */
  readonly isPlain: boolean
}

/**
 * The bytes that bring an empty terminal of the same size into the state of this one: both screens, as much scrollback as fits,
 * and everything by which what comes next would look different. Undefined where not even the screen fits.
 */
export function drawSnapshot(
  terminal: Terminal,
  modes: ScreenModes,
  { maxBytes, isPlain }: SnapshotRequest,
): Uint8Array | undefined {
  const isAlternate = terminal.buffer.active.type === 'alternate'
  const behind = isAlternate
    ? drawBehind(terminal) + ALTERNATE_SCREEN + drawRows(terminal, 'alternate', { maxBytes: 0, isPlain })
    : drawUnseen(terminal)
  const end = encoder.encode(behind + drawState(terminal, modes))
  const rows = encoder.encode(drawRows(terminal, 'normal', { maxBytes: maxBytes - end.byteLength, isPlain }))
  if (rows.byteLength + end.byteLength > maxBytes) return undefined
  const bytes = new Uint8Array(rows.byteLength + end.byteLength)
  bytes.set(rows)
  bytes.set(end, rows.byteLength)
  return bytes
}

function openPen(terminal: Terminal, isPlain = false): Pen {
  return new Pen((link) => readLink(terminal, link), isPlain)
}

/** The rows on the screen, and of those above as many as fit. */
function drawRows(
  terminal: Terminal,
  which: 'normal' | 'alternate',
  { maxBytes, isPlain }: SnapshotRequest,
): string {
  const { cols, rows } = terminal
  const buffer = terminal.buffer[which]
  const { saved } = readScreenMemory(terminal, which)
  const sequence = saveSequence(terminal, saved)
  const mark = sequence === '' ? undefined : { y: Math.min(saved.y, buffer.length - 1), sequence }
  const writer = new RowWriter({ buffer, cols, rows, pen: openPen(terminal, isPlain), mark })
  const drawn: string[] = []
  let bytes = OPENING_BYTES + Buffer.byteLength(sequence)
  for (const row of writer.upwards()) {
    bytes += Buffer.byteLength(row)
    if (bytes > maxBytes && drawn.length >= buffer.length - buffer.baseY) break
    drawn.push(row)
  }
  const first = buffer.length - drawn.length
  return (
    // A first row that goes on from one that is gone: made as the second, which moves up.
    (buffer.getLine(first)?.isWrapped === true && rows > 1 ? `\x1b[${cols}G  \x1b[H\x1b[M` : '') +
    // A cursor that was saved further up comes back in the first row.
    (mark !== undefined && mark.y < first ? `${mark.sequence}\r` : '') +
    drawn.toReversed().join('')
  )
}

/** Saves a cursor in the row that it is read in; nothing where it would be that of a new terminal. */
function saveSequence(terminal: Terminal, { x, y, style, charset }: SavedCursor): string {
  const pen = openPen(terminal)
  const look = style === undefined ? '' : pen.take(style)
  if (x === 0 && y === 0 && look === '' && charset === ASCII) return ''
  const [set, unset] = charset === ASCII ? ['', ''] : [`\x1b(${charset}`, `\x1b(${ASCII}`]
  return `\x1b[${x + 1}G${look}${set}${SAVE_CURSOR}${unset}${pen.reset()}`
}

/** What the alternate screen remembers while it is not shown. */
function drawUnseen(terminal: Terminal): string {
  const { saved } = readScreenMemory(terminal, 'alternate')
  const sequence = saveSequence(terminal, saved)
  if (sequence === '') return ''
  return `\x1b[?1047h\x1b[${Math.min(saved.y, terminal.rows - 1) + 1};1H${sequence}${NORMAL_SCREEN}`
}

/** Margins, tab stops and the cursor of the normal screen behind the alternate one. */
function drawBehind(terminal: Terminal): string {
  const { cursorX, cursorY } = terminal.buffer.normal
  return drawMargins(readScreenMemory(terminal, 'normal')) + moveTo(cursorX, cursorY)
}

function drawMargins({ region, tabStops }: ScreenMemory): string {
  const stops = tabStops?.map((column) => `\x1b[${column + 1}G\x1bH`).join('')
  return (
    (stops === undefined ? '' : `\x1b[3g${stops}`) +
    (region === undefined ? '' : `\x1b[${region.top + 1};${region.bottom + 1}r`)
  )
}

function moveTo(x: number, y: number): string {
  return `\x1b[${y + 1};${x + 1}H`
}

/** The screen that is shown has its cells already; what follows is everything else, with the cursor last. */
function drawState(terminal: Terminal, modes: ScreenModes): string {
  const { active } = terminal.buffer
  const memory = readScreenMemory(terminal, active.type)
  const { originMode, insertMode } = terminal.modes
  const origin = originMode ? (memory.region?.top ?? 0) : 0
  const cursor: Cursor = { terminal, pen: openPen(terminal), origin }
  const style = readNextStyle(terminal)
  return (
    drawMargins(memory) +
    drawRestoredCharset(terminal, memory) +
    (originMode ? '\x1b[?6h' : '') +
    moveTo(active.cursorX, active.cursorY - origin) +
    (active.cursorX < terminal.cols ? '' : drawEdge(cursor)) +
    (isCharsetRestored(terminal, memory) ? '' : drawCharsets(terminal)) +
    drawModes(terminal) +
    modes.serialize() +
    (style === undefined ? cursor.pen.reset() : cursor.pen.take(style)) +
    underlineColorSequence(readNextUnderlineColor(terminal)) +
    (isAfterCharacter(terminal) ? drawJoint(cursor, insertMode) : '')
  )
}

interface Cursor {
  readonly terminal: Terminal
  readonly pen: Pen
  /** The row that counts as the first. */
  readonly origin: number
}

/** The character before the cursor, and where it is. */
function characterBefore({
  terminal,
}: Cursor): { readonly cell: IBufferCell; readonly column: number } | undefined {
  const { active } = terminal.buffer
  const line = active.getLine(active.baseY + active.cursorY)
  const x = Math.min(active.cursorX, terminal.cols)
  const last = line?.getCell(x - 1)
  const column = last?.getWidth() === 0 && last.getChars() === '' ? x - 2 : x - 1
  const cell = line?.getCell(column)
  return cell === undefined ? undefined : { cell, column }
}

/** A cursor is behind the last column only after a character: the one that is there is written again. */
function drawEdge(cursor: Cursor): string {
  const { terminal, pen, origin } = cursor
  const before = characterBefore(cursor)
  if (before === undefined) return ''
  const place = moveTo(before.column, terminal.buffer.active.cursorY - origin)
  const isCut = before.cell.getWidth() > terminal.cols - before.column
  const isErased = before.cell.getChars() === '' || isCut
  if (!isErased) return place + pen.take(before.cell) + before.cell.getChars() + NOTHING
  // Erasing a row leaves the cursor where it is. Of a row with more in it, the last cell becomes a space.
  return `${place}${pen.takeGround(background(before.cell))} ${isErasedRow(terminal) ? '\x1b[1K' : ''}`
}

/** Whether the row of the cursor has nothing but one ground. */
function isErasedRow({ buffer: { active }, cols }: Terminal): boolean {
  const line = active.getLine(active.baseY + active.cursorY)
  const cells = Array.from({ length: cols }, (_, column) => line?.getCell(column))
  const grounds = new Set(cells.map((cell) => (cell?.getChars() === '' ? background(cell) : undefined)))
  return grounds.size === 1 && !grounds.has(undefined)
}

/** A combining mark joins only what came right before it, so that has to be the last thing. */
function drawJoint(cursor: Cursor, isInserting: boolean): string {
  const { terminal, pen, origin } = cursor
  const before = characterBefore(cursor)
  if (before === undefined || before.cell.getChars() === '') return ''
  // A change of size may have put the cursor onto the character.
  const end = before.column + Math.max(1, before.cell.getWidth())
  if (end !== Math.min(terminal.buffer.active.cursorX, terminal.cols) || pen.take(before.cell) !== '')
    return ''
  const place = moveTo(before.column, terminal.buffer.active.cursorY - origin)
  const room = isInserting ? `\x1b[${before.cell.getWidth()}P` : ''
  return place + room + before.cell.getChars()
}

/** A restored cursor brings back a character set that is not the one designated where it is shifted to. */
function isCharsetRestored(terminal: Terminal, { saved }: ScreenMemory): boolean {
  const { active, designated, level } = readCharsets(terminal)
  return active !== (designated[level] ?? ASCII) && active === saved.charset
}

function drawRestoredCharset(terminal: Terminal, memory: ScreenMemory): string {
  return isCharsetRestored(terminal, memory) ? `${drawCharsets(terminal)}${RESTORE_CURSOR}\x1b[m\x1b[0"q` : ''
}

function drawCharsets(terminal: Terminal): string {
  const { designated, level } = readCharsets(terminal)
  const designations = designated.map((name, index) =>
    name === ASCII ? '' : `\x1b${DESIGNATORS[index]}${name}`,
  )
  return designations.join('') + (level === 0 ? '' : (SHIFTS[level] ?? ''))
}

/** None of these moves the cursor. */
function drawModes({ modes, options }: Terminal): string {
  const parts: readonly (readonly [boolean, string])[] = [
    [modes.insertMode, '\x1b[4h'],
    [options.convertEol === true, '\x1b[20h'],
    [modes.applicationCursorKeysMode, '\x1b[?1h'],
    [modes.applicationKeypadMode, '\x1b='],
    [!modes.wraparoundMode, '\x1b[?7l'],
    [modes.reverseWraparoundMode, '\x1b[?45h'],
    [modes.sendFocusMode, '\x1b[?1004h'],
    [modes.bracketedPasteMode, '\x1b[?2004h'],
    [modes.synchronizedOutputMode, '\x1b[?2026h'],
  ]
  const set = parts.map(([isSet, sequence]) => (isSet ? sequence : ''))
  return MOUSE_MODES[modes.mouseTrackingMode] + set.join('')
}
