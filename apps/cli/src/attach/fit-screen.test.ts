import { expect, test } from 'bun:test'
import type { Screen } from '@sandwire/client'
import type { SnapshotPart } from '@sandwire/protocol'
import { fitScreen, isLarger } from './fit-screen.ts'

const SESSION = { cols: 20, rows: 8 }
const ALTERNATE = '\x1b[?1047h\x1b[r\x1b[2J\x1b[H'

type PartOf = readonly [kind: SnapshotPart['kind'], text: string, row?: number, column?: number]

/** A snapshot of these parts, and bytes after them. */
function screenOf(parts: readonly PartOf[], rest = ''): Screen {
  return {
    ...SESSION,
    exact: true,
    bytes: Buffer.from(parts.map(([, text]) => text).join('') + rest),
    parts: parts.map(([kind, text, row, column]) => ({
      kind,
      bytes: Buffer.byteLength(text),
      ...(row === undefined ? {} : { row }),
      ...(column === undefined ? {} : { column }),
    })),
  }
}

function drawn(screen: Screen, window = { cols: 20, rows: 4 }): string {
  return Buffer.from(fitScreen(screen, window)).toString()
}

const lines = (...rows: readonly string[]): string => rows.join('\r\n')
const rows = (...texts: readonly string[]): PartOf => ['rows', lines(...texts)]
const cursor = (row: number, column: number): PartOf => [
  'cursor',
  `\x1b[${row + 1};${column + 1}H`,
  row,
  column,
]

test('a screen that fits is drawn as it came', () => {
  const screen = screenOf([rows('a', '', ''), cursor(0, 1)])
  expect(fitScreen(screen, SESSION)).toBe(screen.bytes)
  expect(fitScreen(screen, { cols: 99, rows: 99 })).toBe(screen.bytes)
  expect(isLarger(SESSION, { cols: 19, rows: 8 })).toBe(true)
  expect(isLarger(SESSION, { cols: 20, rows: 7 })).toBe(true)
})

test.each<readonly [string, Screen, string]>([
  [
    'blank rows below the cursor are omitted',
    screenOf([rows('é', '$ ', '', '', '', '', '', ''), cursor(1, 2)], '\x1b[?2004h'),
    `${lines('é', '$ ')}\x1b[3G\x1b[?2004h`,
  ],
  [
    'a cursor in a blank row stays in it',
    screenOf([rows('a', '', '', '', '', '', '', ''), cursor(2, 0)]),
    `${lines('a', '', '')}\x1b[1G`,
  ],
  [
    'scrollback and a full screen are written to the last row',
    screenOf([rows('0', '1', '2', '3', '4', '5', '6', '7', '8'), cursor(7, 1)]),
    `${lines('0', '1', '2', '3', '4', '5', '6', '7', '8')}\x1b[2G`,
  ],
  [
    'rows with text below the cursor are drawn, and the cursor moves back up',
    screenOf([rows('1', '2', '3', '4', '5', '6', '', ''), cursor(3, 1)]),
    `${lines('1', '2', '3', '4', '5', '6')}\x1b[2A\x1b[2G`,
  ],
  [
    'rows that would push the cursor out of the window are omitted',
    screenOf([rows('1', '2', '3', '4', '5', '6', '7', '8'), cursor(0, 0)]),
    `${lines('1', '2', '3', '4')}\x1b[3A\x1b[1G`,
  ],
  [
    'tab stops are set before the cursor moves to its column',
    screenOf(
      [rows('ab', '', '', '', '', '', '', ''), ['tabs', '\x1b[3g\x1b[5G\x1bH'], cursor(0, 2)],
      '\x1b[2Gb',
    ),
    'ab\x1b[3g\x1b[5G\x1bH\x1b[3G\x1b[2Gb',
  ],
  [
    'a character that is written again stays in its row',
    screenOf([
      rows('ab', '', '', '', '', '', '', ''),
      cursor(0, 2),
      ['state', '\x1b[?25l'],
      cursor(0, 1),
      ['state', 'b'],
    ]),
    'ab\x1b[3G\x1b[?25l\x1b[2Gb',
  ],
  [
    'the state of the hidden screen is omitted',
    screenOf([
      rows('a', '', '', '', '', '', '', ''),
      ['hidden', '\x1b[?1047h\x1b[5;1H\x1b7\x1b[?1047l'],
      cursor(0, 1),
    ]),
    'a\x1b[2G',
  ],
  [
    'the upper rows of a full-screen program are drawn, and its cursor position stays',
    screenOf([
      rows('$ ', '', '', '', '', '', '', ''),
      cursor(0, 2),
      ['alternate', ALTERNATE],
      rows('1', '2', '3', '4', '5', '6', '7', '8'),
      cursor(6, 0),
    ]),
    `$ \x1b[3G${ALTERNATE}\x1b[?7l${lines('1', '2', '3', '4')}\x1b[?7h\x1b[7;1H`,
  ],
])('in a lower window %s', (_, screen, expected) => expect(drawn(screen)).toBe(expected))

test('in a narrower window the cursor wraps with its row', () => {
  const screen = screenOf([rows('x'.repeat(18), '', '', '', '', '', '', ''), cursor(0, 18)])
  expect(drawn(screen, { cols: 10, rows: 8 })).toBe(`${'x'.repeat(18)}\x1b[9G`)
})

test.each<readonly [string, Screen]>([
  ['margins', screenOf([rows('a', '', ''), ['margins', '\x1b[1;7r'], cursor(1, 0)])],
  ['no cursor', screenOf([rows('a', '', '')])],
  ['no description of its parts', { ...SESSION, exact: true, bytes: Buffer.from('a\r\n\r\n') }],
])('a screen with %s is left as it is', (_, screen) =>
  expect(drawn(screen)).toBe(Buffer.from(screen.bytes).toString()),
)
