import type { Screen } from '@sandwire/client'
import type { WindowSize } from './window-size.ts'

const ESC = '\x1b'
/** Start of the alternate screen in a snapshot. */
const ALTERNATE = '\x1b[?1047h\x1b[r\x1b[2J\x1b[H'
/** Content of an inactive alternate screen; not drawn here, because it moves the cursor. */
const INACTIVE = new RegExp(`${ESC}\\[\\?1047h[^]*?${ESC}\\[\\?1047l`)
/** Cursor position by row and column. The rows come before the first of them. */
const CURSOR_POSITION = new RegExp(`${ESC}\\[(\\d+);(\\d+)H`)
const CURSOR_POSITIONS = new RegExp(CURSOR_POSITION, 'g')
/** Sequences that depend on the rows of the larger screen: margins, origin mode, restore cursor. */
const BY_ROW = new RegExp(`${ESC}(?:\\[\\d+;\\d+r|\\[\\?6h|8)`)
const BREAK = '\r\n'
const NO_WRAP = '\x1b[?7l'
const WRAP = '\x1b[?7h'

/** True if a screen has more rows or columns than a window. */
export function isLarger(screen: WindowSize, window: WindowSize): boolean {
  return screen.cols > window.cols || screen.rows > window.rows
}

/**
 * Redraws a screen for a smaller window. Of the normal screen, the last rows with the cursor are shown, and later output
 * continues there. Of a full-screen program, the upper rows are shown, because it addresses rows and columns. A screen
 * with unknown sequences is not changed.
 */
export function fitScreen(screen: Screen, window: WindowSize): Uint8Array {
  if (!isLarger(screen, window)) return screen.bytes
  // One character per byte.
  const text = Buffer.from(screen.bytes).toString('latin1')
  const at = text.indexOf(ALTERNATE)
  const fitted =
    at < 0
      ? fitNormalScreen(text, screen, window)
      : fitNormalScreen(text.slice(0, at), screen, window) +
        ALTERNATE +
        fitAlternateScreen(text.slice(at + ALTERNATE.length), window)
  return Buffer.from(fitted, 'latin1')
}

/** Drops rows below the cursor that would push it out of the window, blank ones first. */
function fitNormalScreen(text: string, screen: WindowSize, window: WindowSize): string {
  const known = text.replace(INACTIVE, '')
  const cursor = CURSOR_POSITION.exec(known)
  if (cursor === null || BY_ROW.test(known)) return text
  const rows = known.slice(0, cursor.index).split(BREAK)
  let below = Math.max(0, screen.rows - Number(cursor[1]))
  for (; below > 0 && rows.at(-1) === ''; below -= 1) rows.pop()
  for (; below >= window.rows; below -= 1) rows.pop()
  const up = below === 0 ? '' : `\x1b[${below}A`
  // Long rows wrap, and so does the column of the cursor.
  const state = known
    .slice(cursor.index)
    .replaceAll(CURSOR_POSITIONS, (_, _row, column) => `\x1b[${((Number(column) - 1) % window.cols) + 1}G`)
  return rows.join(BREAK) + up + state
}

/** Drops rows below the window, and does not wrap long ones, which would push the others up. */
function fitAlternateScreen(text: string, window: WindowSize): string {
  const end = CURSOR_POSITION.exec(text)?.index ?? text.length
  const rows = text.slice(0, end).split(BREAK).slice(0, window.rows)
  return NO_WRAP + rows.join(BREAK) + WRAP + text.slice(end)
}
