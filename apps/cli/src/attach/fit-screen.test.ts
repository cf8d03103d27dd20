import { expect, test } from 'bun:test'
import { fitScreen, isLarger } from './fit-screen.ts'

const SESSION = { cols: 20, rows: 8 }
const ALTERNATE = '\x1b[?1047h\x1b[r\x1b[2J\x1b[H'

/** What is drawn of a session's screen in a window. */
function drawn(text: string, window = { cols: 20, rows: 4 }): string {
  const screen = { ...SESSION, exact: true, bytes: Buffer.from(text) }
  return Buffer.from(fitScreen(screen, window)).toString()
}

const lines = (...rows: readonly string[]): string => rows.join('\r\n')

test('a screen that has room is drawn as it came', () => {
  const screen = { ...SESSION, exact: true, bytes: Buffer.from('a\r\n\r\n\x1b[1;2H') }
  expect(fitScreen(screen, SESSION)).toBe(screen.bytes)
  expect(fitScreen(screen, { cols: 99, rows: 99 })).toBe(screen.bytes)
  expect(isLarger(SESSION, { cols: 19, rows: 8 })).toBe(true)
  expect(isLarger(SESSION, { cols: 20, rows: 7 })).toBe(true)
})

test.each([
  [
    'blank rows below the cursor are left out',
    `${lines('é', '$ ', '', '', '', '', '', '')}\x1b[2;3H\x1b[?2004h`,
    `${lines('é', '$ ')}\x1b[3G\x1b[?2004h`,
  ],
  [
    'a cursor in a blank row stays in it',
    `${lines('a', '', '', '', '', '', '', '')}\x1b[3;1H`,
    `${lines('a', '', '')}\x1b[1G`,
  ],
  [
    'rows above the screen and a full screen are written to the last',
    `${lines('0', '1', '2', '3', '4', '5', '6', '7', '8')}\x1b[8;2H`,
    `${lines('0', '1', '2', '3', '4', '5', '6', '7', '8')}\x1b[2G`,
  ],
  [
    'rows with text below the cursor are drawn, and it goes up again',
    `${lines('1', '2', '3', '4', '5', '6', '', '')}\x1b[4;2H`,
    `${lines('1', '2', '3', '4', '5', '6')}\x1b[2A\x1b[2G`,
  ],
  [
    'of such rows only so many are that the cursor is in sight',
    `${lines('1', '2', '3', '4', '5', '6', '7', '8')}\x1b[1;1H`,
    `${lines('1', '2', '3', '4')}\x1b[3A\x1b[1G`,
  ],
  [
    'a character that is written again stays in its row',
    `${lines('ab', '', '', '', '', '', '', '')}\x1b[1;3H\x1b[?25l\x1b[1;2Hb`,
    `ab\x1b[3G\x1b[?25l\x1b[2Gb`,
  ],
  [
    'what the other screen remembers is left out',
    `${lines('a', '', '', '', '', '', '', '')}\x1b[?1047h\x1b[5;1H\x1b[3G\x1b7\x1b[?1047l\x1b[1;2H`,
    'a\x1b[2G',
  ],
  [
    'of a full-screen program the upper rows are drawn, and its places stay',
    `${lines('$ ', '', '', '', '', '', '', '')}\x1b[1;3H${ALTERNATE}${lines('1', '2', '3', '4', '5', '6', '7', '8')}\x1b[7;1H`,
    `$ \x1b[3G${ALTERNATE}\x1b[?7l${lines('1', '2', '3', '4')}\x1b[?7h\x1b[7;1H`,
  ],
])('in a lower window %s', (_, text, expected) => expect(drawn(text)).toBe(expected))

test('in a narrower window the cursor goes on in the next row with its text', () => {
  const text = `${lines('x'.repeat(18), '', '', '', '', '', '', '')}\x1b[1;19H`
  expect(drawn(text, { cols: 10, rows: 8 })).toBe(`${'x'.repeat(18)}\x1b[9G`)
})

test.each([
  ['margins', `${lines('a', '', '')}\x1b[1;7r\x1b[2;1H`],
  ['rows that count from margins', `${lines('a', '', '')}\x1b[?6h\x1b[2;1H`],
  ['a cursor that comes back', `${lines('a', '', '')}\x1b(0\x1b8\x1b[2;1H`],
  ['no place of the cursor', lines('a', '', '')],
])('a screen with %s stays as it is', (_, text) => expect(drawn(text)).toBe(text))
