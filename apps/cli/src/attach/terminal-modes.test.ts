import { describe, expect, test } from 'bun:test'
import { TerminalModes } from './terminal-modes.ts'

const encoder = new TextEncoder()
const PLAIN = '\x1b[0m'

function after(text: string): TerminalModes {
  const modes = new TerminalModes()
  modes.scan(encoder.encode(text))
  return modes
}

describe('TerminalModes', () => {
  test.each([
    ['nothing', 'text \x1b[31m \x1b]0;title\x07 \x1b(B', ''],
    ['mouse', '\x1b[?1000;1006h', '\x1b[?1000l\x1b[?1006l'],
    ['bracketed paste', '\x1b[?2004h', '\x1b[?2004l'],
    ['a paste mode that was turned off again', '\x1b[?2004h\x1b[?2004l', ''],
    ['a hidden cursor', '\x1b[?25l', '\x1b[?25h'],
    ['the alternate screen', '\x1b[?1049h', '\x1b[?1049l'],
    ['application keys', '\x1b[?1h\x1b=', '\x1b[?1l\x1b>'],
    ['keypad turned off again', '\x1b=\x1b>', ''],
    ['margins', '\x1b[2;10r', '\x1b7\x1b[r\x1b8'],
    ['margins taken back', '\x1b[2;10r\x1b[r', ''],
    ['a cursor shape', '\x1b[5 q', '\x1b[0 q'],
    ['keyboard protocols', '\x1b[>1u\x1b[>4;2m', '\x1b[<1u\x1b[>4m'],
    ['keyboard levels popped', '\x1b[>1u\x1b[>1u\x1b[<2u', ''],
    ['insert mode', '\x1b[4h', '\x1b[4l'],
    ['insert and newline modes at once', '\x1b[4;20h', '\x1b[4l\x1b[20l'],
    ['insert mode turned off again', '\x1b[4h\x1b[4l', ''],
    ['another mode of that number', '\x1b[?4h', ''],
    ['origin mode, which puts the cursor elsewhere', '\x1b[?6h', '\x1b[?6l\x1b[999H'],
    ['origin mode within margins', '\x1b[2;10r\x1b[?6h', '\x1b[?6l\x1b[999H\x1b7\x1b[r\x1b8'],
    ['a soft reset', '\x1b[4h\x1b[?6h\x1b[!p', ''],
    ['a full reset', '\x1b[?1049h\x1b[?1000h\x1bc', ''],
    ['what stands in a string', '\x1b]52;c;[?1000h\x1b\\', ''],
    ['a sequence after an unterminated string', '\x1bPx\x1b[?1000h', '\x1b[?1000l'],
    ['a canceled sequence', '\x1b[?100\x180h', ''],
    ['an endless sequence', `\x1b[${'1'.repeat(1000)}h`, ''],
  ])('undoes exactly what was left on: %s', (_name, text, undone) => {
    expect(after(text).undo()).toBe(`${undone}${PLAIN}`)
  })

  test('undoes once', () => {
    const modes = after('\x1b[?1049h\x1b[?25l')
    modes.undo()
    expect(modes.undo()).toBe(PLAIN)
  })

  test('sees sequences that are split anywhere', () => {
    const bytes = encoder.encode('ab\x1b[?1049;2004hcd\x1b[?25l')
    for (let cut = 0; cut <= bytes.length; cut++) {
      const modes = new TerminalModes()
      modes.scan(bytes.subarray(0, cut))
      modes.scan(bytes.subarray(cut))
      expect(modes.isAlternateScreen).toBe(true)
      expect(modes.undo()).toBe(`\x1b[?2004l\x1b[?1049l\x1b[?25h${PLAIN}`)
    }
  })

  test('reports whether text may be inserted', () => {
    expect(after('abc').isBetweenSequences).toBe(true)
    for (const text of ['\x1b', '\x1b[', '\x1b[3', '\x1b]0;t', '\x1b('])
      expect(after(text).isBetweenSequences).toBe(false)
    expect(after('\x1b[31').undo()).toBe(`\x1b\\${PLAIN}`)
  })
})
