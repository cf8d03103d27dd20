import { expect, test } from 'bun:test'
import { Terminal } from '@xterm/headless'
import { guardErase } from './erase-guard.ts'

async function draw(scrollback: number, text: string): Promise<readonly string[]> {
  const terminal = new Terminal({ cols: 4, rows: 2, scrollback, allowProposedApi: true })
  guardErase(terminal)
  await new Promise<void>((resolve) => terminal.write(text, resolve))
  const { active } = terminal.buffer
  return Array.from({ length: 2 }, (_, y) => active.getLine(active.baseY + y)?.translateToString(true) ?? '')
}

/** Fills the screen and leaves the cursor in its last cell. */
const FULL = 'abcd\r\nefgh\u{1b}[2;4H'

test.each(['\u{1b}[1J', '\u{1b}[?1J'])(
  '%j in the corner of a fresh terminal does not end it',
  async (erase) => {
    expect(await draw(10, `${FULL}${erase}\u{1b}[1;1Hx`)).toEqual(['xbcd', 'efgh'])
  },
)

test('the guard does not change other erasures', async () => {
  expect(await draw(0, `${FULL}\u{1b}[1Jx`)).toEqual(['', '   x'])
  expect(await draw(10, `${FULL}\r\n\u{1b}[2;4H\u{1b}[1Jx`)).toEqual(['', '   x'])
  expect(await draw(10, `${FULL}\u{1b}[D\u{1b}[1Jx`)).toEqual(['', '  xh'])
})
