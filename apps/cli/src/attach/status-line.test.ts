import { describe, expect, test } from 'bun:test'
import { Terminal } from '@xterm/headless'
import { StatusLine } from './status-line.ts'

/** A status line on a terminal emulator of 20 by 4. */
function open(options: { isAlternate?: boolean; canDraw?: boolean } = {}) {
  const terminal = new Terminal({ cols: 20, rows: 4, allowProposedApi: true })
  const written: string[] = []
  let damages = 0
  const line = new StatusLine({
    write: (text) => {
      written.push(text)
      terminal.write(text)
    },
    columns: () => 20,
    isAlternateScreen: () => options.isAlternate ?? false,
    canDraw: () => options.canDraw ?? true,
    onRepaintNeeded: () => damages++,
  })
  const look = async () => {
    await new Promise<void>((resolve) => terminal.write('', resolve))
    const buffer = terminal.buffer.active
    const lines = Array.from({ length: 4 }, (_, row) =>
      buffer.getLine(buffer.baseY + row)?.translateToString(true),
    )
    return { lines, cursor: [buffer.cursorX, buffer.cursorY] }
  }
  return { terminal, line, look, written, damages: () => damages }
}

describe('StatusLine', () => {
  test('is drawn below the cursor, which does not move, and is cleared completely', async () => {
    const { terminal, line, look } = open()
    terminal.write('one\r\n$ ls')
    const before = await look()
    line.show('lost')
    expect(await look()).toEqual({ lines: ['one', '$ ls', 'lost', ''], cursor: before.cursor })
    line.show('back')
    expect((await look()).lines[2]).toBe('back')
    line.clear()
    expect(await look()).toEqual(before)
  })

  test('scrolls at the bottom of the screen; the cursor stays at its text', async () => {
    const { terminal, line, look } = open()
    terminal.write('1\r\n2\r\n3\r\n$ ls')
    line.show('lost')
    expect(await look()).toEqual({ lines: ['2', '3', '$ ls', 'lost'], cursor: [4, 2] })
    line.clear()
    terminal.write(' -l')
    expect((await look()).lines).toEqual(['2', '3', '$ ls -l', ''])
  })

  test('keeps colors and a pending wrap', async () => {
    const { terminal, line, look } = open()
    terminal.write('\x1b[31mred')
    line.show('lost')
    line.clear()
    terminal.write('der')
    await look()
    expect(terminal.buffer.active.getLine(0)?.getCell(4)?.getFgColor()).toBe(1)
  })

  test('covers the last row of a full-screen program, and requests a repaint', async () => {
    const { terminal, line, look, damages } = open({ isAlternate: true })
    terminal.write('\x1b[?1049ha\x1b[4;1Hbar\x1b[2;3H')
    line.show('lost')
    expect(await look()).toEqual({ lines: ['a', '', '', 'lost'], cursor: [2, 1] })
    expect(damages()).toBe(0)
    line.clear()
    expect(damages()).toBe(1)
  })

  test('fits into one row', async () => {
    const { line, look } = open()
    line.show('x'.repeat(100))
    expect((await look()).lines).toEqual(['', 'x'.repeat(19), '', ''])
  })

  test('draws nothing inside a sequence, and nothing twice', () => {
    const forbidden = open({ canDraw: false })
    forbidden.line.show('lost')
    forbidden.line.clear()
    expect(forbidden.written).toEqual([])
    const { line, written } = open()
    line.clear()
    line.show('lost')
    line.show('lost')
    expect(written).toHaveLength(1)
  })
})
