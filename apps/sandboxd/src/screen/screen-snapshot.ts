import type { IBufferCell, Terminal } from '@xterm/headless'
import type { SnapshotPart } from '@sandwire/protocol'
import {
  isAfterCharacter,
  readCharsets,
  readLink,
  readNextStyle,
  readNextUnderlineColor,
  readScreenState,
  type SavedCursor,
  type ScreenState,
} from './screen-internals.ts'
import type { ScreenModes } from './screen-modes.ts'
import { backgroundOf, Pen, underlineColorSequence } from './screen-pen.ts'
import { RowWriter } from './screen-rows.ts'

const encoder = new TextEncoder()
const NORMAL_SCREEN = '\x1b[?1047l'
/** Resets the margins, because many terminals have one pair for both screens. */
const ALTERNATE_SCREEN = '\x1b[?1047h\x1b[r\x1b[2J\x1b[H'
const SAVE_CURSOR = '\x1b7'
const RESTORE_CURSOR = '\x1b8'
/** A string terminator without a string: only keeps a combining mark that follows from joining the last character. */
const SEPARATOR = '\x1b\\'
const DESIGNATORS = ['(', ')', '*', '+']
const SHIFTS = ['\x0f', '\x0e', '\x1bn', '\x1bo']
const ASCII = 'B'
/** Reserved for sequences before the first row. */
const OPENING_BYTES = 32
const MOUSE_MODES = {
  none: '',
  x10: '\x1b[?9h',
  vt200: '\x1b[?1000h',
  drag: '\x1b[?1002h',
  any: '\x1b[?1003h',
}

export interface SnapshotRequest {
  readonly maxBytes: number
  /** Without styles, for a screen that would not fit with them. */
  readonly isPlain: boolean
}

/** Bytes that draw a screen, and their consecutive parts. */
export interface DrawnScreen {
  readonly bytes: Uint8Array
  readonly parts: readonly SnapshotPart[]
}

/** A part before it is encoded. */
interface DrawnPart {
  readonly kind: SnapshotPart['kind']
  readonly text: string
  readonly row?: number
  readonly column?: number
}

/**
 * The bytes that bring an empty terminal of the same size into the state of this one: both screens, as much scrollback as fits,
 * and all state that affects later output. Undefined when not even the screen fits.
 */
export function drawSnapshot(
  terminal: Terminal,
  modes: ScreenModes,
  { maxBytes, isPlain }: SnapshotRequest,
): DrawnScreen | undefined {
  const isAlternate = terminal.buffer.active.type === 'alternate'
  const hidden: readonly DrawnPart[] = isAlternate
    ? [
        ...drawHiddenNormal(terminal),
        { kind: 'alternate', text: ALTERNATE_SCREEN },
        { kind: 'rows', text: drawRows(terminal, 'alternate', { maxBytes: 0, isPlain }) },
      ]
    : [{ kind: 'hidden', text: drawHiddenAlternate(terminal) }]
  const parts = [...hidden, ...drawState(terminal, modes)]
  const end = encoder.encode(parts.map(({ text }) => text).join(''))
  const rows = encoder.encode(drawRows(terminal, 'normal', { maxBytes: maxBytes - end.byteLength, isPlain }))
  if (rows.byteLength + end.byteLength > maxBytes) return undefined
  const bytes = new Uint8Array(rows.byteLength + end.byteLength)
  bytes.set(rows)
  bytes.set(end, rows.byteLength)
  const measured = parts.map(({ text, ...part }) => ({ ...part, bytes: Buffer.byteLength(text) }))
  return { bytes, parts: [{ kind: 'rows', bytes: rows.byteLength }, ...measured] }
}

function openPen(terminal: Terminal, isPlain = false): Pen {
  return new Pen((link) => readLink(terminal, link), isPlain)
}

/** The rows of the screen, and as many rows of the scrollback as fit. */
function drawRows(
  terminal: Terminal,
  which: 'normal' | 'alternate',
  { maxBytes, isPlain }: SnapshotRequest,
): string {
  const { cols, rows } = terminal
  const buffer = terminal.buffer[which]
  const { saved } = readScreenState(terminal, which)
  const sequence = saveSequence(terminal, saved)
  const savedCursor = sequence === '' ? undefined : { y: Math.min(saved.y, buffer.length - 1), sequence }
  const writer = new RowWriter({ buffer, cols, rows, pen: openPen(terminal, isPlain), savedCursor })
  const drawn: string[] = []
  let bytes = OPENING_BYTES + Buffer.byteLength(sequence)
  for (const row of writer.upwards()) {
    bytes += Buffer.byteLength(row)
    if (bytes > maxBytes && drawn.length >= buffer.length - buffer.baseY) break
    drawn.push(row)
  }
  const first = buffer.length - drawn.length
  return (
    // A first row that continues an omitted one: written as the second row, which then moves up.
    (buffer.getLine(first)?.isWrapped === true && rows > 1 ? `\x1b[${cols}G  \x1b[H\x1b[M` : '') +
    // A cursor saved in an omitted row is saved in the first row instead.
    (savedCursor !== undefined && savedCursor.y < first ? `${savedCursor.sequence}\r` : '') +
    drawn.toReversed().join('')
  )
}

/** Saves a cursor in the current row; empty when it equals that of a new terminal. */
function saveSequence(terminal: Terminal, { x, y, style, charset }: SavedCursor): string {
  const pen = openPen(terminal)
  const styling = style === undefined ? '' : pen.take(style)
  if (x === 0 && y === 0 && styling === '' && charset === ASCII) return ''
  const [set, unset] = charset === ASCII ? ['', ''] : [`\x1b(${charset}`, `\x1b(${ASCII}`]
  return `\x1b[${x + 1}G${styling}${set}${SAVE_CURSOR}${unset}${pen.reset()}`
}

/** The saved cursor of the alternate screen while the normal one is shown. */
function drawHiddenAlternate(terminal: Terminal): string {
  const { saved } = readScreenState(terminal, 'alternate')
  const sequence = saveSequence(terminal, saved)
  if (sequence === '') return ''
  return `\x1b[?1047h\x1b[${Math.min(saved.y, terminal.rows - 1) + 1};1H${sequence}${NORMAL_SCREEN}`
}

/** Margins, tab stops and cursor of the normal screen while the alternate one is shown. */
function drawHiddenNormal(terminal: Terminal): readonly DrawnPart[] {
  const { cursorX, cursorY } = terminal.buffer.normal
  const state = readScreenState(terminal, 'normal')
  return [
    { kind: 'tabs', text: drawTabStops(state) },
    { kind: 'margins', text: drawMargins(state) },
    { kind: 'cursor', text: moveTo(cursorX, cursorY), row: cursorY, column: cursorX },
  ]
}

function drawTabStops({ tabStops }: ScreenState): string {
  const stops = tabStops?.map((column) => `\x1b[${column + 1}G\x1bH`).join('')
  return stops === undefined ? '' : `\x1b[3g${stops}`
}

function drawMargins({ region }: ScreenState): string {
  return region === undefined ? '' : `\x1b[${region.top + 1};${region.bottom + 1}r`
}

function moveTo(x: number, y: number): string {
  return `\x1b[${y + 1};${x + 1}H`
}

/** Everything but the cells of the active screen, with the cursor last. */
function drawState(terminal: Terminal, modes: ScreenModes): readonly DrawnPart[] {
  const { active } = terminal.buffer
  const state = readScreenState(terminal, active.type)
  const { originMode } = terminal.modes
  const origin = originMode ? (state.region?.top ?? 0) : 0
  const cursor: Cursor = { terminal, pen: openPen(terminal), origin }
  const style = readNextStyle(terminal)
  return [
    { kind: 'tabs', text: drawTabStops(state) },
    {
      kind: 'margins',
      text: drawMargins(state) + drawRestoredCharset(terminal, state) + (originMode ? '\x1b[?6h' : ''),
    },
    moveCursor(cursor, active.cursorX),
    ...(active.cursorX < terminal.cols ? [] : drawEdge(cursor)),
    {
      kind: 'state',
      text:
        (isCharsetRestored(terminal, state) ? '' : drawCharsets(terminal)) +
        drawModes(terminal) +
        modes.serialize() +
        (style === undefined ? cursor.pen.reset() : cursor.pen.take(style)) +
        underlineColorSequence(readNextUnderlineColor(terminal)),
    },
    ...(isAfterCharacter(terminal) ? drawJoint(cursor) : []),
  ]
}

interface Cursor {
  readonly terminal: Terminal
  readonly pen: Pen
  /** First row of the addressable area in origin mode. */
  readonly origin: number
}

/** Moves to a column of the cursor's row. Absolute, because xterm.js counts rows twice from the origin in CHA (6.0). */
function moveCursor({ terminal, origin }: Cursor, column: number): DrawnPart {
  const row = terminal.buffer.active.cursorY
  return { kind: 'cursor', text: moveTo(column, row - origin), row, column }
}

/** The character before the cursor, and its column. */
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

/** The cursor is past the last column only after a character is written there, so that character is written again. */
function drawEdge(cursor: Cursor): readonly DrawnPart[] {
  const { terminal, pen } = cursor
  const before = characterBefore(cursor)
  if (before === undefined) return []
  const isTruncated = before.cell.getWidth() > terminal.cols - before.column
  const isErased = before.cell.getChars() === '' || isTruncated
  // Erasing an empty row does not move the cursor. In any other row the last cell becomes a space.
  const text = isErased
    ? `${pen.takeBackground(backgroundOf(before.cell))} ${isErasedRow(terminal) ? '\x1b[1K' : ''}`
    : pen.take(before.cell) + before.cell.getChars() + SEPARATOR
  return [moveCursor(cursor, before.column), { kind: 'state', text }]
}

/** True when the cursor's row is empty with one background color. */
function isErasedRow({ buffer: { active }, cols }: Terminal): boolean {
  const line = active.getLine(active.baseY + active.cursorY)
  const cells = Array.from({ length: cols }, (_, column) => line?.getCell(column))
  const backgrounds = new Set(cells.map((cell) => (cell?.getChars() === '' ? backgroundOf(cell) : undefined)))
  return backgrounds.size === 1 && !backgrounds.has(undefined)
}

/** A combining mark joins only the character written right before it, so that character is written last. */
function drawJoint(cursor: Cursor): readonly DrawnPart[] {
  const { terminal, pen } = cursor
  const before = characterBefore(cursor)
  if (before === undefined || before.cell.getChars() === '') return []
  // A resize may have moved the cursor onto the character.
  const end = before.column + Math.max(1, before.cell.getWidth())
  if (end !== Math.min(terminal.buffer.active.cursorX, terminal.cols) || pen.take(before.cell) !== '')
    return []
  const deletion = terminal.modes.insertMode ? `\x1b[${before.cell.getWidth()}P` : ''
  return [moveCursor(cursor, before.column), { kind: 'state', text: deletion + before.cell.getChars() }]
}

/** True when restoring a saved cursor selected a character set that differs from the designated one. */
function isCharsetRestored(terminal: Terminal, { saved }: ScreenState): boolean {
  const { active, designated, level } = readCharsets(terminal)
  return active !== (designated[level] ?? ASCII) && active === saved.charset
}

function drawRestoredCharset(terminal: Terminal, state: ScreenState): string {
  return isCharsetRestored(terminal, state) ? `${drawCharsets(terminal)}${RESTORE_CURSOR}\x1b[m\x1b[0"q` : ''
}

function drawCharsets(terminal: Terminal): string {
  const { designated, level } = readCharsets(terminal)
  const designations = designated.map((name, index) =>
    name === ASCII ? '' : `\x1b${DESIGNATORS[index]}${name}`,
  )
  return designations.join('') + (level === 0 ? '' : (SHIFTS[level] ?? ''))
}

/** Modes whose sequences do not move the cursor. */
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
