import { expect, test } from 'bun:test'
import { type Canvas, OrderedScreen } from './ordered-screen.ts'

/** A canvas that parses when the test says so, and records its calls. */
function createCanvas() {
  const events: string[] = []
  const parsing: (() => void)[] = []
  const canvas: Canvas = {
    write: (bytes, done) => {
      parsing.push(() => {
        events.push(`parsed ${String(new TextDecoder().decode(bytes as Uint8Array))}`)
        done()
      })
    },
    resize: (cols, rows) => events.push(`size ${cols}x${rows}`),
    reset: () => events.push('reset'),
  }
  return { canvas, events, parse: () => parsing.shift()?.(), pending: () => parsing.length }
}

const bytes = (text: string) => new TextEncoder().encode(text)

test('passes bytes on at once', () => {
  const { canvas, pending } = createCanvas()
  const screen = new OrderedScreen(canvas)
  screen.write(bytes('a'), () => {})
  screen.write(bytes('b'), () => {})
  expect(pending()).toBe(2)
})

test('delays a resize until the bytes before it are parsed, and what follows with it', () => {
  const { canvas, events, parse, pending } = createCanvas()
  const screen = new OrderedScreen(canvas)
  screen.write(bytes('a'), () => events.push('a consumed'))
  screen.resize(100, 30)
  screen.write(bytes('b'), () => events.push('b consumed'))
  expect(pending()).toBe(1)
  parse()
  parse()
  expect(events).toEqual(['parsed a', 'a consumed', 'size 100x30', 'parsed b', 'b consumed'])
})

test('replaces the screen after what came before it', () => {
  const { canvas, events, parse } = createCanvas()
  const screen = new OrderedScreen(canvas)
  screen.write(bytes('old'), () => {})
  screen.redraw({ cols: 80, rows: 24, bytes: bytes('new') }, () => events.push('drawn'))
  screen.write(bytes('more'), () => {})
  while (parse() !== undefined || events.length < 6) if (events.length >= 6) break
  expect(events).toEqual(['parsed old', 'reset', 'size 80x24', 'parsed new', 'drawn', 'parsed more'])
})
