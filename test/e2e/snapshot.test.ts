import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { limits } from '@sandwire/protocol'
import { eventually, openFaultProxy } from '@sandwire/testing'
import { Attached, runShell } from './support/attached.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'
import { describeScreen, drawBytes, drawEvents, textOf, writeTo } from './support/screen.ts'

const COLS = 100
const ROWS = 30
let sandboxd: RunningSandboxd

beforeAll(async () => {
  sandboxd = await startSandboxd({ args: ['--log-bytes', '262144'] })
})
afterAll(() => sandboxd.stop())

/** Writes a file to the raw terminal, then waits for input before it writes another and exits. */
async function play(first: string, second = ''): Promise<Attached> {
  const id = crypto.randomUUID()
  await Bun.write(join(sandboxd.workspace, `${id}-1`), first)
  await Bun.write(join(sandboxd.workspace, `${id}-2`), second)
  const script = `stty raw -echo; cat ${id}-1; head -c 1 >/dev/null; cat ${id}-2; head -c 1 >/dev/null`
  const driver = runShell(sandboxd, script, { mode: 'pty', cols: COLS, rows: ROWS })
  const length = Buffer.byteLength(first)
  await eventually(() => driver.stdout.length >= length, { what: 'the first part' })
  return driver
}

async function joinScreen(driver: Attached): Promise<Attached> {
  const late = new Attached(sandboxd, { session: driver.session, role: 'viewer' })
  await eventually(() => late.screens.length > 0, { what: 'a snapshot' })
  return late
}

const text = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `line ${from + index} of many\r\n`).join('')

const screens: Record<string, string> = {
  'plain lines': `${text(0, 10)}$ `,
  'scrolled lines': text(0, 300),
  'colors and styles':
    '\x1b[1;31mbold red\x1b[0m \x1b[38;5;208mpalette\x1b[48;2;1;2;3mtrue\x1b[7minverse\x1b[0m\r\n\x1b[3;4;9mstyled\x1b[0m\x1b[32m',
  'cursor moves':
    '\x1b[2J\x1b[10;20Hmiddle\x1b[5;5Htop\x1b[30;1Hbottom\x1b[15;50H\x1b[K\x1b[1;1Hx\x1b[12;34H',
  'wide and combining characters': '漢字かな🙂e\u0301 ñ \u{1F468}\u200D\u{1F469}\r\n한국어\r\n',
  'text at a place behind emoji': 'a 🙂🚀 b\x1b[20Gc\r\n✅ d\x1b[1;3H',
  'lines that wrap': `${'abcdefghij'.repeat(25)}\r\n${'漢'.repeat(120)}\r\nend`,
  'a line that fills the last column': 'x'.repeat(COLS),
  'an alternate screen': `shell\r\n\x1b[?1049h\x1b[2J\x1b[H\x1b[7m title \x1b[0m\x1b[10;10Hbody\x1b[30;1Hstatus`,
  'an alternate screen that was left': `before\r\n\x1b[?1049h\x1b[2Jeditor\x1b[?1049lafter\r\n`,
  'a scroll region': `\x1b[2J\x1b[5;20r\x1b[20;1H${'scroll\r\n'.repeat(30)}\x1b[18;3H`,
  'a scroll region with origin mode': `\x1b[2J\x1b[5;20r\x1b[?6h\x1b[3;3Hinside`,
  'a scroll region of an alternate screen': `\x1b[?1049h\x1b[2J\x1b[3;10r\x1b[10;1H${'s\r\n'.repeat(20)}`,
  'inserted and deleted lines': `${text(0, 28)}\x1b[5;1H\x1b[3L\x1b[10;1H\x1b[2M\x1b[12;4H\x1b[4P\x1b[2@`,
  'modes of an editor': '\x1b[?1h\x1b=\x1b[?2004h\x1b[?25l\x1b[?1002h\x1b[?1006h\x1b[?1004h\x1b[?7l',
  'modes that were reset':
    '\x1b[?2004h\x1b[?25l\x1b[?1003h\x1b[?1006h\x1b[5;9r\x1b[?25h\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[r',
  'a soft reset': '\x1b[?25l\x1b[5;9r\x1b[!p',
  'a full reset': '\x1b[?1006h\x1b[5;9r\x1bc',
  'insert mode': 'abc\x1b[4h',
  tabs: 'a\tb\tc\r\n\t\tx',
}

describe('a snapshot for a late attachment', () => {
  test.each(Object.entries(screens))(
    '[S7] renders %s like a terminal that received every byte',
    async (_, output) => {
      await using driver = await play(output)
      await using late = await joinScreen(driver)
      const wanted = await drawBytes(driver.stdout.bytes, COLS, ROWS)
      const drawn = await drawEvents(late, COLS, ROWS)
      expect(late.screens[0]?.exact).toBe(true)
      expect(describeScreen(drawn)).toEqual(describeScreen(wanted))
      // Later output must appear at the same position and in the same style.
      const next = 'next\r\nlines\r\n\x1b[Hhome\x1b[31mred'
      expect(describeScreen(await writeTo(drawn, next))).toEqual(describeScreen(await writeTo(wanted, next)))
    },
  )

  test('[S7] includes the scrollback', async () => {
    await using driver = await play(text(0, 9_000))
    await using late = await joinScreen(driver)
    const lines = textOf(await drawEvents(late, COLS, ROWS))
    expect(lines).toHaveLength(limits.SCROLLBACK_LINES + ROWS - 1)
    expect(lines).toEqual(textOf(await drawBytes(driver.stdout.bytes, COLS, ROWS)))
  })

  test('[S7] omits the oldest scrollback beyond its limit', async () => {
    const colorful = Array.from({ length: 40 }, (_, at) => `\x1b[3${at % 7};4${(at + 3) % 7}mx`).join('')
    await using driver = await play(`${colorful}\r\n`.repeat(3_000))
    await using late = await joinScreen(driver)
    const bytes = late.screens[0]?.bytes.byteLength ?? 0
    expect(bytes).toBeLessThanOrEqual(limits.MAX_SNAPSHOT_BYTES)
    expect(bytes).toBeGreaterThan(limits.MAX_SNAPSHOT_BYTES / 2)
    const lines = textOf(await drawEvents(late, COLS, ROWS))
    const wanted = textOf(await drawBytes(driver.stdout.bytes, COLS, ROWS))
    expect(lines).toEqual(wanted.slice(-lines.length))
  })

  test('[S2] is followed by the live bytes', async () => {
    await using driver = await play(`${text(0, 100)}\x1b[33m`, `more \x1b[1mtext\x1b[0m\r\n${text(0, 3)}`)
    await using late = await joinScreen(driver)
    await driver.send('x')
    await driver.waitFor('line 2 of many')
    await driver.send('x')
    await Promise.all([driver.exit, late.exit])
    const wanted = await drawBytes(driver.stdout.bytes, COLS, ROWS)
    expect(describeScreen(await drawEvents(late, COLS, ROWS))).toEqual(describeScreen(wanted))
    expect(late.stdout.length).toBeLessThan(300)
  })

  test('[S7] is correct after more output than the log holds', async () => {
    const lines = Array.from(
      { length: 40_000 },
      (_, index) => `\x1b[3${index % 8}mrow ${index}\x1b[0m ${'.'.repeat(index % 60)}\r\n`,
    )
    await using driver = await play(lines.join(''))
    await using late = await joinScreen(driver)
    const wanted = await drawBytes(driver.stdout.bytes, COLS, ROWS)
    const drawn = await drawEvents(late, COLS, ROWS)
    if (late.screens[0]?.exact === true) expect(describeScreen(drawn)).toEqual(describeScreen(wanted))
    // It may be marked inexact when trimming overtook it; the last rows are still in the log and correct.
    const rows = (screen: object) => ('rows' in screen && Array.isArray(screen.rows) ? screen.rows : [])
    expect(rows(describeScreen(drawn)).slice(-5)).toEqual(rows(describeScreen(wanted)).slice(-5))
  })

  test('[S1] is correct for ten attachments that join concurrently', async () => {
    await using driver = await play(`${text(0, 50)}prompt$ `)
    const wanted = describeScreen(await drawBytes(driver.stdout.bytes, COLS, ROWS))
    const late = await Promise.all(Array.from({ length: 10 }, () => joinScreen(driver)))
    for (const client of late) {
      expect(client.screens[0]?.exact).toBe(true)
      expect(describeScreen(await drawEvents(client, COLS, ROWS))).toEqual(wanted)
      client.handle.detach()
    }
  })

  test("[S8] is laid out for the terminal's current size", async () => {
    await using driver = await play(`${'abcdefghij'.repeat(25)}\r\n${text(0, 5)}`, 'wide\r\n')
    await using early = await joinScreen(driver)
    driver.handle.resize(60, 20)
    await eventually(() => early.sizes.at(-1)?.cols === 60, { what: 'the new size' })
    await using late = await joinScreen(driver)
    expect(late.screens[0]).toMatchObject({ cols: 60, rows: 20 })
    const [drawn, wanted] = [await drawEvents(late, 60, 20), await drawEvents(driver, COLS, ROWS)]
    expect(describeScreen(drawn)).toEqual(describeScreen(wanted))
    expect(describeScreen(await drawEvents(early, COLS, ROWS))).toEqual(describeScreen(wanted))
  })

  test('includes the title', async () => {
    await using driver = await play('\x1b]0;my title\x07x')
    await using late = await joinScreen(driver)
    expect(new TextDecoder().decode(late.screens[0]?.bytes)).toContain('\x1b]2;my title\x07')
  })

  test('[X3] is sent with the exit to an attachment that joins after the program ended', async () => {
    await using driver = runShell(sandboxd, `printf 'all done'; exit 6`, { mode: 'pty' })
    await driver.exit
    await using late = new Attached(sandboxd, { session: driver.session, role: 'viewer' })
    expect(await late.exit).toMatchObject({ code: 6 })
    expect(new TextDecoder().decode(late.screens[0]?.bytes)).toContain('all done')
  })
})

describe('an attachment disconnected for longer than the log reaches back', () => {
  test('[F3] resumes a terminal with a snapshot', async () => {
    await using daemon = await startSandboxd({ args: ['--log-bytes', '65536', '--grace-seconds', '1'] })
    await using proxy = openFaultProxy({ target: { port: daemon.port } })
    const script =
      'stty -icanon -echo; head -c 1 >/dev/null; seq -f "number %.0f" 1 400000; touch written; head -c 1 >/dev/null'
    await using driver = runShell(daemon, script, { mode: 'pty', port: proxy.port })
    await driver.isAttached()
    await using viewer = new Attached(daemon, { session: driver.session, role: 'collaborator' })
    await viewer.isAttached()
    proxy.setFaults({ newConnections: 'refuse' })
    proxy.disconnectAll('reset')
    await viewer.send('x')
    await eventually(() => Bun.file(join(daemon.workspace, 'written')).exists(), {
      what: 'the output',
    })
    proxy.setFaults({ newConnections: 'accept' })
    await eventually(() => driver.screens.length > 0, { what: 'a snapshot' })
    const showsEnd = async () =>
      JSON.stringify(describeScreen(await drawEvents(driver, 80, 24))).includes('number 400000')
    await eventually(showsEnd, { what: 'the end of the output on the screen' })
    await driver.send('x')
    expect(await driver.exit).toMatchObject({ code: 0 })
  })

  test('[F2] resumes a trimming pipe with an exact gap', async () => {
    await using daemon = await startSandboxd({ args: ['--log-bytes', '65536', '--grace-seconds', '1'] })
    await using proxy = openFaultProxy({ target: { port: daemon.port } })
    const script = 'read go; seq 1 1000000; touch written; read go'
    await using driver = runShell(daemon, script, { overflow: 'trim', port: proxy.port, isFrozen: true })
    await driver.isAttached()
    await driver.send('\n')
    await eventually(
      async () => {
        const response = await daemon.fetch(`/sessions/${driver.session}`)
        return ((await response.json()) as { output: { end: number } }).output.end > 0
      },
      { what: 'output' },
    )
    proxy.setFaults({ newConnections: 'refuse' })
    proxy.disconnectAll('reset')
    await eventually(() => Bun.file(join(daemon.workspace, 'written')).exists(), {
      what: 'the output',
    })
    proxy.setFaults({ newConnections: 'accept' })
    driver.thaw()
    await driver.waitFor('1000000\n')
    await driver.send('\n')
    const { outputEnd } = await driver.exit
    const whole = Array.from({ length: 1_000_000 }, (_, index) => `${index + 1}\n`).join('')
    expect(outputEnd).toBe(whole.length)
    expect(driver.gaps).toHaveLength(1)
    const [gap] = driver.gaps
    expect(driver.text).toBe(whole.slice(0, gap?.from) + whole.slice(gap?.to))
  })
})
