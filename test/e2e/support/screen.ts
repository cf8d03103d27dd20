import { limits } from '@sandwire/protocol'
import { Unicode11Addon } from '@xterm/addon-unicode11'
import { Terminal } from '@xterm/headless'
import type { Attached } from './attached.ts'

const { SCROLLBACK_LINES } = limits

/** A terminal emulator for tests, with the character widths of the workbench. */
function openScreen(cols: number, rows: number): Terminal {
  const terminal = new Terminal({ cols, rows, scrollback: SCROLLBACK_LINES, allowProposedApi: true })
  terminal.loadAddon(new Unicode11Addon())
  terminal.unicode.activeVersion = '11'
  return terminal
}

async function write(terminal: Terminal, bytes: Uint8Array | string): Promise<void> {
  await new Promise<void>((resolve) => terminal.write(bytes, resolve))
}

/** Renders an attachment's events in order. */
export async function drawEvents(client: Attached, cols: number, rows: number): Promise<Terminal> {
  const terminal = openScreen(cols, rows)
  for (const event of client.events) {
    switch (event.kind) {
      case 'output':
        await write(terminal, event.bytes)
        break
      case 'resized':
        terminal.resize(event.cols, event.rows)
        break
      case 'screen':
        terminal.reset()
        terminal.resize(event.screen.cols, event.screen.rows)
        await write(terminal, event.screen.bytes)
    }
  }
  return terminal
}

/** Renders bytes on a new terminal. */
export async function drawBytes(bytes: Uint8Array, cols: number, rows: number): Promise<Terminal> {
  const terminal = openScreen(cols, rows)
  await write(terminal, bytes)
  return terminal
}

/** Writes text to a terminal and returns the terminal. */
export async function writeTo(terminal: Terminal, text: string): Promise<Terminal> {
  await write(terminal, text)
  return terminal
}

/** Scrollback and screen without trailing empty lines, optionally limited to the last scrollback lines. */
export function textOf(
  { buffer: { active }, rows }: Terminal,
  lastLines = SCROLLBACK_LINES,
): readonly string[] {
  const lines = Array.from(
    { length: active.length },
    (_, y) => active.getLine(y)?.translateToString(true) ?? '',
  )
  return lines
    .slice(-lastLines - rows)
    .join('\n')
    .trimEnd()
    .split('\n')
}

/** The rows of the screen as runs of text in one palette color, `-` for the default; blanks are omitted. */
export function colorsOf({ buffer: { active }, rows }: Terminal): readonly string[] {
  return Array.from({ length: rows }, (_, row) => {
    const line = active.getLine(active.baseY + row)
    const runs: ColorRun[] = []
    for (let column = 0; column < (line?.length ?? 0); column++) {
      const cell = line?.getCell(column)
      if (cell === undefined || cell.getWidth() === 0) continue
      runs.push({
        color: cell.isFgPalette() ? String(cell.getFgColor()) : '-',
        text: cell.getChars() || ' ',
      })
    }
    return showRuns(runs)
  })
}

export interface ColorRun {
  readonly color: string
  readonly text: string
}

/** Joins adjacent cells of one color, without blanks. */
export function showRuns(runs: readonly ColorRun[]): string {
  let shown = ''
  let color = ''
  for (const run of runs) {
    const text = run.text.replaceAll(/\s/g, '')
    if (text === '') continue
    shown += run.color === color ? text : ` ${run.color}:${text}`
    color = run.color
  }
  return shown.trim()
}

function describeRow(terminal: Terminal, row: number): string {
  const buffer = terminal.buffer.active
  const line = buffer.getLine(buffer.baseY + row)
  if (line === undefined) return ''
  let text = ''
  let style = ''
  for (let column = 0; column < terminal.cols; column++) {
    const cell = line.getCell(column)
    if (cell === undefined) continue
    const flags = [
      cell.isBold(),
      cell.isItalic(),
      cell.isUnderline(),
      cell.isInverse(),
      cell.isDim(),
      cell.isStrikethrough(),
    ]
    const marks = flags.map((flag) => (flag === 0 ? '-' : '+')).join('')
    const now = `${marks}${cell.getFgColorMode()}:${cell.getFgColor()}/${cell.getBgColorMode()}:${cell.getBgColor()}`
    if (now !== style) text += `{${now}}`
    style = now
    text += cell.getWidth() === 0 ? '' : cell.getChars() || ' '
  }
  return text.trimEnd()
}

/** All visible cells, and the state that affects later output. */
export function describeScreen(terminal: Terminal): object {
  const { active } = terminal.buffer
  // Not part of the emulator's public API.
  const core = (terminal as unknown as { _core: Core })._core
  return {
    size: [terminal.cols, terminal.rows],
    buffer: active.type,
    cursor: [active.cursorX, active.cursorY],
    rows: Array.from({ length: terminal.rows }, (_, row) => describeRow(terminal, row)),
    modes: { ...terminal.modes, synchronizedOutputMode: false },
    isCursorHidden: core.coreService.isCursorHidden,
    mouseEncoding: core.coreMouseService.activeEncoding,
    scroll: [core.buffer.scrollTop, core.buffer.scrollBottom],
  }
}

interface Core {
  readonly coreService: { readonly isCursorHidden: boolean }
  readonly coreMouseService: { readonly activeEncoding: string }
  readonly buffer: { readonly scrollTop: number; readonly scrollBottom: number }
}
