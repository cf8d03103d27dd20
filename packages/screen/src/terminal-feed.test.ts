import { expect, test } from 'bun:test'
import { Terminal } from '@xterm/headless'
import fc from 'fast-check'
import { TerminalFeed } from './terminal-feed.ts'

const SCROLLBACK = 20
const [COLS, ROWS] = [30, 6]
const encoder = new TextEncoder()

function open(): Terminal {
  return new Terminal({ cols: COLS, rows: ROWS, scrollback: SCROLLBACK, allowProposedApi: true })
}

/** Counts the parsed bytes. */
function countParsed(terminal: Terminal): () => number {
  let bytes = 0
  const write = terminal.write.bind(terminal)
  terminal.write = (data, done) => {
    bytes += data.length
    write(data, done)
  }
  return () => bytes
}

/** The visible state of a terminal. */
function look(terminal: Terminal): unknown {
  const { active } = terminal.buffer
  const lines = Array.from({ length: active.length }, (_, y) => {
    const line = active.getLine(y)
    const cells = Array.from({ length: COLS }, (_, x) => {
      const cell = line?.getCell(x)
      return [cell?.getChars(), cell?.getFgColor(), cell?.getBgColor(), cell?.isInverse()].join()
    })
    return [line?.isWrapped, ...cells].join('|')
  })
  return { lines, at: [active.cursorX, active.cursorY, active.baseY, active.type] }
}

interface FeedMode {
  /** Waits for each part to be parsed or skipped before writing the next. */
  readonly awaitsEachPart: boolean
  readonly later?: (run: () => void) => void
  readonly enoughBytes?: number
}

/** The page's limit of bytes that are parsed without waiting. */
const ENOUGH_BYTES = 512 * 1024

async function compare(
  parts: readonly Uint8Array[],
  { awaitsEachPart, later, enoughBytes = ENOUGH_BYTES }: FeedMode = { awaitsEachPart: false },
): Promise<{ readonly parsed: number }> {
  const [skipping, whole] = [open(), open()]
  const parsed = countParsed(skipping)
  const wait = later === undefined ? undefined : { later, enoughBytes }
  const feed = new TerminalFeed(skipping, () => SCROLLBACK, wait)
  const told: number[] = []
  for (const [index, part] of parts.entries()) {
    const done = new Promise<void>((resolve) => {
      feed.write(part, () => {
        told.push(index)
        resolve()
      })
    })
    await new Promise<void>((resolve) => whole.write(part, resolve))
    if (awaitsEachPart) await done
  }
  await new Promise<void>((resolve) => feed.run(resolve))
  expect(told).toEqual([...parts.keys()])
  expect(look(skipping)).toEqual(look(whole))
  return { parsed: parsed() }
}

/** A terminal with a feed, and its scheduled callbacks. */
function openHeld() {
  const terminal = open()
  const parsed = countParsed(terminal)
  const later: (() => void)[] = []
  const feed = new TerminalFeed(terminal, () => SCROLLBACK, {
    later: (run) => later.push(run),
    enoughBytes: ENOUGH_BYTES,
  })
  const write = (bytes: Uint8Array): Promise<void> => new Promise((resolve) => feed.write(bytes, resolve))
  return { terminal, parsed, feed, later, write }
}

const lines = (count: number, text: (at: number) => string): Uint8Array =>
  encoder.encode(Array.from({ length: count }, (_, at) => `${text(at)}\r\n`).join(''))

test('does not parse text that a flood scrolls out', async () => {
  const flood = lines(10_000, (at) => `line ${at} of the flood`)
  const { parsed } = await compare([encoder.encode('$ '), flood, encoder.encode('$ ')])
  expect(parsed).toBeLessThan(flood.byteLength / 50)
})

test('does not parse numbers that a flood scrolls out, except inside a sequence', async () => {
  const flood = lines(20_000, (at) => String(at))
  expect((await compare([flood])).parsed).toBeLessThan(flood.byteLength / 50)
  expect((await compare([encoder.encode('\u{1b}['), flood])).parsed).toBeGreaterThan(flood.byteLength)
})

test('parses a flood up to its last byte that is not text', async () => {
  const flood = lines(10_000, (at) => (at === 5_000 ? '\u{1b}[31mred' : `line ${at} of the flood`))
  const { parsed } = await compare([flood])
  expect(parsed).toBeGreaterThan(flood.byteLength / 2)
  expect(parsed).toBeLessThan(flood.byteLength * 0.55)
  const colored = lines(10_000, (at) => `\u{1b}[3${at % 8}mline`)
  expect((await compare([colored])).parsed).toBe(colored.byteLength)
})

test('treats all scripts as text, and C1 controls in UTF-8 as controls', async () => {
  const flood = lines(5_000, (at) => `zeile ${at} größe 漢字 🙂 é`)
  expect((await compare([flood])).parsed).toBeLessThan(flood.byteLength / 20)
  // U+009B begins a sequence as ESC [ does.
  const colored = lines(5_000, (at) => `\u{9b}3${at % 8}mline of the flood`)
  expect((await compare([colored])).parsed).toBe(colored.byteLength)
})

test('parses all of a flood that a sequence consumes', async () => {
  const flood = lines(5_000, (at) => `line ${at} of the flood`)
  const { parsed } = await compare([
    encoder.encode('\u{1b}]0;a title'),
    flood,
    encoder.encode('\u{7}seen again'),
  ])
  expect(parsed).toBeGreaterThan(flood.byteLength)
})

test('parses all of a flood below the scrolling region, where lines overwrite each other', async () => {
  const below = encoder.encode('\u{1b}[1;3r\u{1b}[6;1H')
  const flood = lines(10_000, (at) => (at === 5_000 ? 'the longest of all lines' : `line ${at}`))
  expect((await compare([below, flood])).parsed).toBeGreaterThan(flood.byteLength)
})

test('joins queued bytes, and runs callbacks in order between them', async () => {
  const terminal = open()
  const parsed = countParsed(terminal)
  const feed = new TerminalFeed(terminal, () => SCROLLBACK)
  const told: string[] = []
  feed.write(encoder.encode('first\r\n'), () => told.push('first'))
  for (let part = 0; part < 100; part += 1)
    feed.write(
      lines(100, (at) => `line ${at} of part ${part}`),
      () => told.push(`part ${part}`),
    )
  const shown = new Promise<string | undefined>((resolve) =>
    feed.run(() => {
      told.push('run')
      resolve(
        terminal.buffer.active.getLine(terminal.buffer.active.baseY + ROWS - 2)?.translateToString(true),
      )
    }),
  )
  feed.write(encoder.encode('last'), () => told.push('last'))
  expect(await shown).toBe('line 99 of part 99')
  await new Promise<void>((resolve) => feed.run(resolve))
  expect(told).toEqual(['first', ...Array.from({ length: 100 }, (_, part) => `part ${part}`), 'run', 'last'])
  expect(parsed()).toBeLessThan(3_000)
})

test('collects more of a flood before it parses, and parses other output at once', async () => {
  const { parsed, feed, later, write } = openHeld()
  const flood = lines(2_000, (at) => `line ${at} of the flood`)
  await write(flood)
  const more = Array.from({ length: 5 }, () => write(flood))
  expect([parsed(), later.length]).toEqual([flood.byteLength, 1])
  later.shift()?.()
  await Promise.all(more)
  expect(parsed()).toBeLessThan(flood.byteLength * 1.1)

  // Enough bytes are parsed without waiting, and so is a resize after them.
  void write(flood)
  await new Promise<void>((resolve) => feed.run(resolve))
  const enough = Array.from({ length: 12 }, () => write(flood))
  await Promise.all(enough)
  later.length = 0
  void write(encoder.encode('$ '))
  await new Promise<void>((resolve) => feed.run(resolve))
  await write(encoder.encode('x'))
  expect(later).toEqual([])
})

test('skips text that is scrolled out while it waits, without delaying its callbacks', async () => {
  const { terminal, parsed, feed, write } = openHeld()
  await write(lines(5_000, (at) => `line ${at} of the flood`))
  const before = parsed()
  let done = 0
  for (let part = 0; part < 1_000; part += 1)
    feed.write(
      lines(100, (at) => `line ${at} of part ${part}`),
      () => (done += 1),
    )
  expect([done, parsed() - before]).toEqual([999, 0])
  // Bytes other than text do not wait, and find all earlier output parsed.
  await write(encoder.encode('\u{1b}[31mred'))
  expect(parsed() - before).toBeLessThan(3_000)
  const { active } = terminal.buffer
  const text = (y: number): string | undefined => active.getLine(y)?.translateToString(true)
  expect([text(active.baseY + ROWS - 1), text(active.baseY + ROWS - 2), text(0)]).toEqual([
    'red',
    'line 99 of part 999',
    'line 75 of part 999',
  ])
})

/** Text that is scrolled out while it waits, because nothing is parsed until the end. */
const NEVER: FeedMode = { awaitsEachPart: false, later: () => undefined }

test('keeps every queued line that is visible at the end, wherever parts begin', async () => {
  const start = encoder.encode('and a beginning')
  const flood = lines(5_000, (at) => `line ${at} of the flood`)
  for (const size of [5, 28, 29, 30, 200]) {
    const more = lines(80, (at) => `number ${at} of 漢字 to keep`)
    const { parsed } = await compare([flood, start, ...split(more, size)], NEVER)
    expect(parsed).toBeLessThan(10_000)
  }
})

test('parses only the end of a flood when there is no limit on waiting bytes', async () => {
  const flood = lines(10_000, (at) => `line ${at} of the flood`)
  const { parsed } = await compare([flood, flood, flood, flood, encoder.encode('$ ')], {
    awaitsEachPart: false,
    later: () => undefined,
    enoughBytes: Number.POSITIVE_INFINITY,
  })
  expect(parsed).toBeLessThan(flood.byteLength / 25)
})

test('does not rely on the state before a sequence that is still being parsed', async () => {
  const flood = lines(5_000, (at) => `line ${at} of the flood`)
  const below = encoder.encode('\u{1b}[1;3r\u{1b}[6;1H')
  const more = lines(400, (at) => (at === 100 ? 'the longest of all lines' : `line ${at}`))
  const terminal = open()
  const feed = new TerminalFeed(terminal, () => SCROLLBACK, {
    later: () => undefined,
    enoughBytes: ENOUGH_BYTES,
  })
  await new Promise<void>((resolve) => feed.write(flood, resolve))
  for (const part of [below, ...split(more, 100)]) feed.write(part, () => undefined)
  await new Promise<void>((resolve) => feed.run(resolve))
  const whole = open()
  for (const part of [flood, below, more]) await new Promise<void>((resolve) => whole.write(part, resolve))
  expect(look(terminal)).toEqual(look(whole))
})

test('parses everything when every line must be parsed', async () => {
  const terminal = open()
  const parsed = countParsed(terminal)
  const feed = new TerminalFeed(terminal, () => undefined)
  const flood = lines(10_000, (at) => `line ${at}`)
  await new Promise<void>((resolve) => feed.write(flood, resolve))
  expect(parsed()).toBe(flood.byteLength)
})

const ESC = '\u{1b}'
/** Sequences before a flood that change where or how it is drawn. */
const piece = fc.oneof(
  fc.constantFrom(
    `${ESC}[2;4r`,
    `${ESC}[1;3r`,
    `${ESC}[3;6r`,
    `${ESC}[r`,
    `${ESC}[?1049h`,
    `${ESC}[?1049l`,
    `${ESC}[31;44m`,
    `${ESC}[7m`,
    `${ESC}[m`,
    `${ESC}[4h`,
    `${ESC}[?7l`,
    `${ESC}[?6h`,
    `${ESC}(0`,
    `${ESC}[6;1H`,
    `${ESC}[1;1H`,
    `${ESC}[5;9H`,
    `${ESC}[2J`,
    `${ESC}7`,
    `${ESC}8`,
    `${ESC}M`,
    ESC,
    `${ESC}[`,
    `${ESC}[3`,
    `${ESC}]0;open`,
    `${ESC}P1$r`,
    `${ESC}X`,
    `${ESC}\\`,
    '\u{7}',
    '漢',
    '\r\n',
  ),
  fc.string({ maxLength: 40 }),
)
const flood = fc
  .record({
    count: fc.integer({ min: 3_000, max: 8_000 }),
    lengths: fc.oneof(
      fc.array(fc.integer({ min: 0, max: 90 }), { minLength: 1, maxLength: 7 }),
      fc.array(fc.integer({ min: 15, max: 30 }), { minLength: 1, maxLength: 3 }),
    ),
    signs: fc.constantFrom('abcXYZ', '0123456789', ' 12', 'a\tb c', ';:<=>?@[', '漢 é', 'e\u{301}🙂'),
    end: fc.constantFrom('', 'cut off', '\n', '\r'),
  })
  .map(({ count, lengths, signs, end }) => {
    const text = lines(count, (at) => `${at} ${signs.repeat(16)}`.slice(0, lengths[at % lengths.length] ?? 0))
    return Buffer.concat([text, encoder.encode(end)])
  })

/** A flood in parts that are split at any position. */
function split(part: string | Uint8Array, size: number): readonly Uint8Array[] {
  const bytes = typeof part === 'string' ? encoder.encode(part) : part
  return Array.from({ length: Math.ceil(bytes.byteLength / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  )
}

const FEED_MODES: readonly FeedMode[] = [
  { awaitsEachPart: true },
  { awaitsEachPart: false },
  { awaitsEachPart: false, later: (run) => setTimeout(run, 1) },
  { awaitsEachPart: false, later: (run) => setTimeout(run, 30) },
  { awaitsEachPart: false, later: (run) => setTimeout(run, 1), enoughBytes: Number.POSITIVE_INFINITY },
]

test('shows the same as a terminal that parses everything, for any output', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof({ arbitrary: piece, weight: 3 }, { arbitrary: flood, weight: 1 }), { maxLength: 12 }),
      fc.constantFrom(5_000, 20_000, 65_536, 1_000_000),
      fc.constantFrom(...FEED_MODES),
      async (parts, size, way) => {
        await compare(
          parts.flatMap((part) => split(part, size)),
          way,
        )
      },
    ),
    { numRuns: 50, seed: 1 },
  )
})
