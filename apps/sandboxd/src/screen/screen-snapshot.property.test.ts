import { test } from 'bun:test'
import fc from 'fast-check'
import { expectSame } from './screen-snapshot.fixture.ts'

const encoder = new TextEncoder()

function number(max: number): fc.Arbitrary<number> {
  return fc.integer({ min: 0, max })
}

/** A prefix and one of the space-separated choices. */
function oneOf(opening: string, words: string): fc.Arbitrary<string> {
  return fc.constantFrom(...words.split(' ')).map((word) => opening + word)
}

/** A control sequence with one number and one of these final characters. */
function csi(finals: string, max: number): fc.Arbitrary<string> {
  return fc.tuple(number(max), oneOf('', finals)).map(([count, final]) => `\x1b[${count}${final}`)
}

function csi2(final: string): fc.Arbitrary<string> {
  return fc.tuple(number(8), number(14)).map(([first, second]) => `\x1b[${first};${second}${final}`)
}

const LETTERS = fc.string({
  unit: fc.constantFrom('a', 'b', 'q', '0', '#', ' '),
  minLength: 1,
  maxLength: 12,
})
const STYLES =
  '0 1 2 3 4 4:3 7 9 53 22 24 27 31 97 38;5;200 38;2;1;2;3 39 41 48;5;99 48;2;9;8;7 49 58:5:4 58:2::1:2:3 59'

/** Parts of valid and invalid program output. */
const output = fc.oneof(
  { weight: 6, arbitrary: LETTERS },
  { weight: 2, arbitrary: oneOf('', '\u4f60 \u597d\u597d\u597d \u{1f642} e\u0301 \u0301 \u6f22a') },
  { weight: 3, arbitrary: fc.constantFrom('\r\n', '\n', '\r', '\b', '\t') },
  { weight: 1, arbitrary: oneOf('\x1b', 'M D E H #8 c') },
  { weight: 3, arbitrary: csi2('H') },
  { weight: 2, arbitrary: csi('A B C D E F G d I Z', 12) },
  { weight: 2, arbitrary: csi('J K', 2) },
  { weight: 2, arbitrary: csi("@ P X L M S T b '} '~", 4) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('\x1b[2 @', '\x1b[2 A', '\x1b[?J', '\x1b[?1K', '\x1b[!p', '\x1b[3g'),
  },
  { weight: 1, arbitrary: csi2('r') },
  { weight: 3, arbitrary: oneOf('\x1b[', STYLES).map((codes) => `${codes}m`) },
  { weight: 1, arbitrary: fc.constantFrom('\x1b[1"q', '\x1b[0"q', '\x1b[g') },
  { weight: 2, arbitrary: oneOf('\x1b', '7 8 [s [u [?1048h [?1048l') },
  { weight: 1, arbitrary: oneOf('\x1b', '(0 (B )0 )A *0 n o %G') },
  { weight: 1, arbitrary: fc.constantFrom('\x0e', '\x0f') },
  { weight: 2, arbitrary: oneOf('\x1b[?', '1049h 1049l 47h 47l 1047h 1047l') },
  { weight: 1, arbitrary: oneOf('\x1b[', '4h 4l 20h 20l ?7l ?7h ?6h ?6l ?45h') },
  { weight: 1, arbitrary: oneOf('\x1b', '= > [?1h [?2004h [?1004h [?1003h [?1000l') },
)
const bytes = output.map((text) => encoder.encode(text))
const size = fc.record({ cols: fc.integer({ min: 3, max: 14 }), rows: fc.integer({ min: 2, max: 6 }) })
const steps = fc.array(fc.oneof({ weight: 30, arbitrary: bytes }, { weight: 1, arbitrary: size }), {
  maxLength: 40,
  size: 'max',
})

test('a snapshot draws the same screen, which stays the same under any further output', async () => {
  await fc.assert(
    fc.asyncProperty(size, steps, bytes, fc.nat(), steps, async (opened, before, cut, where, after) => {
      const at = where % (cut.length + 1)
      await expectSame(opened, [...before, cut.subarray(0, at)], [cut.subarray(at), ...after])
    }),
    { seed: 7, numRuns: 200 },
  )
})
