import { describe, expect, test } from 'bun:test'
import { limits } from '@sandwire/protocol'
import { draw, expectSame, join, type Size, type Step } from './screen-snapshot.fixture.ts'
import type { DrawnScreen } from './screen-snapshot.ts'
import { Screen } from './screen-terminal.ts'

const encoder = new TextEncoder()
const SMALL: Size = { cols: 10, rows: 4 }
const NARROWER: Size = { cols: 6, rows: 4 }

const CASES: readonly (readonly [name: string, before: string, after: string, resize?: Size])[] = [
  ['a full last row with the cursor above it', '\x1b[4;1H0123456789\x1b[2;5H', 'X'],
  ['a full last row on the alternate screen', '\x1b[?1049h\x1b[4;1H0123456789\x1b[2;5H', 'X'],
  ['a cursor past the last column', '0123456789', 'X'],
  ['a cursor past the last column, in other colors', '01234567\x1b[31m\u4f60\x1b[0m', 'X'],
  ['a cursor past an erased last column', '0123456789\x1b[1K', 'X'],
  [
    'an alternate screen that got narrower',
    '\x1b[?1049hAAAAAAAAAA\x1b[4;1HBBBBBBBBBB\x1b[2;3H',
    'X',
    NARROWER,
  ],
  ['an alternate screen that was erased up to the corner', '\x1b[?1049hab\x1b[9;99H\x1b[1J', 'X'],
  ['a normal screen that xterm.js cannot erase up to the corner', 'ab\x1b[9;99H\x1b[1J', 'X'],
  ['a normal screen that became narrower', 'AAAAAAAAAA\r\nB', 'X', NARROWER],
  ['a saved cursor', 'ab\x1b[31m\x1b7\x1b[0m\r\ndef', '\x1b8X'],
  ['a saved cursor in a row that scrolled away', 'ab\x1b7\n\n\n\n\n\n', '\x1b8X'],
  [
    'a cursor saved on the way to the alternate screen',
    '1\r\n2\r\n3\r\n4\r\n5\r\nhel\x1b[?1049hALT',
    '\x1b[?1049lX',
  ],
  ['a cursor saved on the alternate screen', '\x1b[?1049h\x1b[3;3H\x1b7\x1b[?1049l', '\x1b[?1049h\x1b8X'],
  ['line drawing', '\x1b(0lqk', 'lqk'],
  ['line drawing selected by a shift', '\x1b)0\x0elqk', 'lqk\x0flqk'],
  ['line drawing restored with a cursor', '\x1b(0\x1b7\x1b(B\x1b8', 'q\x0fq'],
  ['tab stops', '\x1b[3g\x1b[4G\x1bH\r', '\tX\tY'],
  ['the current style', '\x1b[1;3;4:3;31;48;2;1;2;3;58:5:9mred', 'X\x1b[59mY'],
  ['insert mode', 'abc\x1b[4h\r', 'X'],
  ['wraparound mode off', '\x1b[?7l', '0123456789ABC'],
  ['key and mouse modes', '\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[?1002h\x1b[?1006h', 'X'],
  ['margins in origin mode', '\x1b[2;3r\x1b[?6h\x1b[2;4H', 'X\n\n\x1b[HY'],
  ['margins', '\x1b[2;3r\x1b[3;1Ha', '\n\nb'],
  ['margins of the hidden normal screen', '\x1b[2;3r\x1b[?1049hb', '\x1b[?1049l\x1b[3;1H\n\nb'],
  ['a wide character that did not fit', '\x1b[7m012345678\u4f60', 'X'],
  ['an erased background color', '\x1b[44m\x1b[2J\x1b[H\x1b[0mhi', 'X\x1b[K'],
  ['wrapped rows', '0123456789\x1b[41mabc\x1b[0m\r\n0123456789   \r\n', 'X'],
  ['hyperlinks', '\x1b]8;id=a;http://a.test/\x1b\\link\x1b]8;;\x1b\\ \x1b]8;;http://b.test/;x\x07on', 'X'],
  ['protected text', 'a\x1b[1"qbc\x1b[0"qd\r', '\x1b[?K'],
  ['a combining mark after its letter', 'e', '\u0301X'],
  ['a cursor that a change of size put onto a character', '\x1b[1;9H\u4f60', 'X', { cols: 10, rows: 5 }],
  ['a last column that a mark does not join', '0123456789\x1b[m', '\u0301X'],
  ['a letter that is repeated', '\x1b[32mab', '\x1b[3b'],
  ['a mark that stands alone', '\u0301\u0301a\x1b[m\u0301', '\u0301'],
]

describe('a snapshot', () => {
  test('restores state that only the parser can observe', async () => {
    const observed = [
      '\x1b]2;a title\x07',
      '\x1b]4;1;#ff0000\x07',
      '\x1b]11;rgb:00/11/22\x07',
      '\x1b[?1006h',
      '\x1b[5 q',
      '\x1b[?12h',
      '\x1b[?25l',
    ]
    const given = '\x1b]4;2;#00ff00;3;?\x07\x1b]104;2\x07\x1b]10;red\x07\x1b]12;#fff\x07\x1b]112\x07'
    const drawn = await draw(SMALL, [encoder.encode(given + observed.join(''))])
    expect(new TextDecoder().decode(drawn)).toContain(observed.join(''))
    expect(await draw(SMALL, [drawn])).toEqual(drawn)
  })

  test('of a screen with too many styles keeps its text', async () => {
    const large = { cols: 300, rows: 90 }
    const text = Array.from(
      { length: 300 * 90 },
      (_, index) => `\x1b[38;2;${index % 256};200;201;48;2;202;203;204m${index % 10}`,
    )
    const joined = await join(large, [encoder.encode(text.join(''))])
    const { active } = joined.buffer
    expect(active.getLine(89)?.translateToString()).toBe('0123456789'.repeat(30))
    expect([active.cursorX, active.cursorY]).toEqual([300, 89])
  })

  test('of more lines than fit keeps the last ones with their styles', async () => {
    const wide = { cols: 500, rows: 4 }
    const lines = Array.from(
      { length: 1_900 },
      (_, index) => `\x1b[3${index % 8}m${String(index).repeat(120)}`,
    )
    const drawn = await draw(wide, [encoder.encode(`\x1b7${lines.join('\r\n')}`)])
    expect(drawn.byteLength).toBeLessThanOrEqual(limits.MAX_SNAPSHOT_BYTES)
    expect(drawn.byteLength).toBeGreaterThan(limits.MAX_SNAPSHOT_BYTES - 600)
    const last = (await join(wide, [encoder.encode(lines.join('\r\n'))])).buffer.active.getLine(0)
    expect(last?.getCell(0)?.isFgPalette()).toBe(true)
  })

  for (const [name, before, after, resize] of CASES)
    test(`restores ${name}`, async () => {
      const steps: Step[] = [encoder.encode(before), ...(resize === undefined ? [] : [resize])]
      await expectSame(SMALL, steps, [encoder.encode(after)])
    })

  test.each([
    '\u20ac',
    '\u{1f642}',
    '\x1b[1;31m',
    '\x1b(0',
    '\x1b]2;title\x07',
    '\x1b]8;;http://a.test/\x1b\\',
    '\x1bP$qm\x1b\\',
  ])('continues within %j', async (text) => {
    const bytes = encoder.encode(text)
    for (let at = 1; at < bytes.length; at += 1)
      await expectSame(
        SMALL,
        [encoder.encode('ab'), bytes.subarray(0, at)],
        [bytes.subarray(at), encoder.encode('q')],
      )
  })
})

describe('the parts of a snapshot', () => {
  const partsOf = async (text: string): Promise<readonly (readonly [string, string])[]> => {
    using screen = new Screen(20, 4)
    screen.feed(new TextEncoder().encode(text), () => undefined)
    const { bytes, parts } = await new Promise<DrawnScreen>((resolve) => screen.draw(resolve))
    let at = 0
    return parts.map(({ kind, bytes: length }) => {
      at += length
      return [kind, new TextDecoder().decode(bytes.subarray(at - length, at))]
    })
  }

  test('describe the normal screen', async () => {
    expect(await partsOf('é\r\n\x1b[?2004h$ ')).toEqual([
      ['rows', 'é\r\n$ \r\n\r\n'],
      ['hidden', ''],
      ['tabs', ''],
      ['margins', ''],
      ['cursor', '\x1b[2;3H'],
      ['state', '\x1b[?2004h'],
      ['cursor', '\x1b[2;2H'],
      ['state', ' '],
    ])
  })

  test('describe the alternate screen and the normal one behind it', async () => {
    expect((await partsOf('a\x1b[?1049h\x1b[2;3r\x1b[2;1Hb')).map(([kind]) => kind)).toEqual([
      'rows',
      'tabs',
      'margins',
      'cursor',
      'alternate',
      'rows',
      'tabs',
      'margins',
      'cursor',
      'state',
      'cursor',
      'state',
    ])
  })
})
