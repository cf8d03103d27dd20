import type { Screen } from '@sandwire/client'
import type { WindowSize } from './window-size.ts'

const ESC = '\x1b'
/** Where the screen that full-screen programs draw on begins in a snapshot. */
const ALTERNATE = '\x1b[?1047h\x1b[r\x1b[2J\x1b[H'
/** What that screen remembers while it is not shown: of no use here, and drawn by moving the cursor. */
const UNSEEN = new RegExp(`${ESC}\\[\\?1047h[^]*?${ESC}\\[\\?1047l`)
/** The place of the cursor, by row and column. Before the first one of these are the rows. */
const PLACE = new RegExp(`${ESC}\\[(\\d+);(\\d+)H`)
const PLACES = new RegExp(PLACE, 'g')
/** What counts or moves by rows of the larger screen: margins, lines that count from them, a cursor that comes back. */
const BY_ROW = new RegExp(`${ESC}(?:\\[\\d+;\\d+r|\\[\\?6h|8)`)
const BREAK = '\r\n'
/** Whether a row that is too long goes on in the next one. */
const NO_WRAP = '\x1b[?7l'
const WRAP = '\x1b[?7h'

/** Whether a screen has more rows or columns than a window. */
export function isLarger(screen: WindowSize, window: WindowSize): boolean {
  return screen.cols > window.cols || screen.rows > window.rows
}

/**
 * The bytes that draw a screen in a window that is smaller. Of rows that were written one below the other, the last ones that
 * have the cursor among them are shown, and what comes next goes on there. Of a full-screen program the upper ones are, because
 * it moves by row and column. A screen that is drawn in a way that is not known here stays as it is.
 */
export function fitScreen(screen: Screen, window: WindowSize): Uint8Array {
  if (!isLarger(screen, window)) return screen.bytes
  // One character for each byte, and back.
  const text = Buffer.from(screen.bytes).toString('latin1')
  const at = text.indexOf(ALTERNATE)
  const fitted =
    at < 0
      ? fitWritten(text, screen, window)
      : fitWritten(text.slice(0, at), screen, window) +
        ALTERNATE +
        fitDrawn(text.slice(at + ALTERNATE.length), window)
  return Buffer.from(fitted, 'latin1')
}

/** Blank rows below the cursor are not drawn: they would push it out of the window. Nor are others that would. */
function fitWritten(text: string, screen: WindowSize, window: WindowSize): string {
  const known = text.replace(UNSEEN, '')
  const place = PLACE.exec(known)
  if (place === null || BY_ROW.test(known)) return text
  const rows = known.slice(0, place.index).split(BREAK)
  let below = Math.max(0, screen.rows - Number(place[1]))
  for (; below > 0 && rows.at(-1) === ''; below -= 1) rows.pop()
  for (; below >= window.rows; below -= 1) rows.pop()
  const up = below === 0 ? '' : `\x1b[${below}A`
  // A row that is too long goes on in the next one, and so does the cursor.
  const state = known
    .slice(place.index)
    .replaceAll(PLACES, (_, _row, column) => `\x1b[${((Number(column) - 1) % window.cols) + 1}G`)
  return rows.join(BREAK) + up + state
}

/** Rows below the window are not drawn, and long ones not wrapped: they would push the others up. */
function fitDrawn(text: string, window: WindowSize): string {
  const end = PLACE.exec(text)?.index ?? text.length
  const rows = text.slice(0, end).split(BREAK).slice(0, window.rows)
  return NO_WRAP + rows.join(BREAK) + WRAP + text.slice(end)
}
