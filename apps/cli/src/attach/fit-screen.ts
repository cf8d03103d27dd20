import type { Screen } from '@sandwire/client'
import type { SnapshotPart } from '@sandwire/protocol'
import type { TerminalSize } from './terminal-size.ts'

/** Separates rows in a snapshot. */
const ROW_BREAK = '\r\n'
/** Turns automatic wrapping of long rows off and on. */
const NO_WRAP = '\x1b[?7l'
const WRAP = '\x1b[?7h'

/** A part of a snapshot with its bytes, one character each. */
interface Part extends SnapshotPart {
  readonly text: string
}

/** True when a screen has more rows or columns than a window. */
export function isLarger(screen: TerminalSize, window: TerminalSize): boolean {
  return screen.cols > window.cols || screen.rows > window.rows
}

/**
 * The bytes that draw a screen in a smaller window. Of line-based output the last rows up to the cursor are shown, and later
 * output continues there. Of a full-screen program the upper rows are shown, because it addresses rows and columns. A screen
 * whose server does not describe its parts is left as it is.
 */
export function fitScreen(screen: Screen, window: TerminalSize): Uint8Array {
  if (screen.parts === undefined || !isLarger(screen, window)) return screen.bytes
  const text = Buffer.from(screen.bytes).toString('latin1')
  let at = 0
  const parts = screen.parts.map((part): Part => {
    const from = at
    at += part.bytes
    return { ...part, text: text.slice(from, at) }
  })
  const rest = text.slice(at)
  const alternateAt = parts.findIndex(({ kind }) => kind === 'alternate')
  const fitted =
    alternateAt < 0
      ? fitNormal(parts, screen, window) + rest
      : fitNormal(parts.slice(0, alternateAt), screen, window) +
        fitAlternate(parts.slice(alternateAt), window) +
        rest
  return Buffer.from(fitted, 'latin1')
}

function join(parts: readonly Part[]): string {
  return parts.map(({ text }) => text).join('')
}

/** Omits blank rows below the cursor, and as many others as would push the cursor out of the window. */
function fitNormal(parts: readonly Part[], screen: TerminalSize, window: TerminalSize): string {
  const textOf = (kind: Part['kind']): string => join(parts.filter((part) => part.kind === kind))
  const cursor = parts.find(({ kind }) => kind === 'cursor')
  if (cursor?.row === undefined || textOf('margins') !== '') return join(parts)
  const rows = textOf('rows').split(ROW_BREAK)
  let below = Math.max(0, screen.rows - cursor.row - 1)
  for (; below > 0 && rows.at(-1) === ''; below -= 1) rows.pop()
  for (; below >= window.rows; below -= 1) rows.pop()
  const up = below === 0 ? '' : `\x1b[${below}A`
  const state = parts.slice(parts.indexOf(cursor)).map(({ kind, text, column = 0 }) =>
    // A long row wraps into the next one, and the cursor with it.
    kind === 'cursor' ? `\x1b[${(column % window.cols) + 1}G` : text,
  )
  return rows.join(ROW_BREAK) + up + textOf('tabs') + state.join('')
}

/** Omits rows below the window and does not wrap long rows, because both would scroll the others out of sight. */
function fitAlternate(parts: readonly Part[], window: TerminalSize): string {
  const cropped = parts.map(({ kind, text }) => {
    if (kind !== 'rows') return text
    return NO_WRAP + text.split(ROW_BREAK).slice(0, window.rows).join(ROW_BREAK) + WRAP
  })
  return cropped.join('')
}
