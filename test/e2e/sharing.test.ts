import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, openFaultProxy } from '@sandwire/testing'
import { Attached, runShell } from './support/attached.ts'
import { startWireServer, type WireServer } from './support/wire-server.ts'
import { mintHex, WireClient } from './support/wire-client.ts'

let sandboxd: WireServer

beforeAll(async () => {
  sandboxd = await startWireServer()
})
afterAll(() => sandboxd.stop())

async function join(
  driver: Attached,
  role: 'viewer' | 'collaborator' | 'driver',
  options: { take?: boolean; name?: string } = {},
): Promise<Attached> {
  await driver.isAttached()
  const { name, take } = options
  const request = { session: driver.session, role, ...(take === undefined ? {} : { take }) }
  const joined = new Attached(sandboxd, request, name === undefined ? {} : { name })
  return joined.isAttached()
}

/** Lines with a prefix that identifies their writer. */
function linesOf(text: string, prefix: string): string[] {
  return text.split('\n').filter((line) => line.startsWith(prefix))
}

describe('roles', () => {
  test('[L2] the first attachment drives, a second driver without take joins as viewer', async () => {
    await using first = runShell(sandboxd, 'cat')
    await first.isAttached()
    await using second = await join(first, 'driver')
    expect([first.handle.role, second.handle.role]).toEqual(['driver', 'viewer'])
  })

  test('[L3] a driver with take gets the lease, and the previous driver becomes a viewer', async () => {
    await using first = runShell(sandboxd, 'cat')
    await using second = await join(first, 'driver', { take: true })
    expect(second.handle.role).toBe('driver')
    await eventually(() => first.handle.role === 'viewer', { what: 'the first to become a viewer' })
    await second.send('from second\n')
    await first.waitFor('from second')
  })

  test('[L5] the lease is requested and given', async () => {
    await using first = runShell(sandboxd, 'cat', { name: 'one' })
    await using second = await join(first, 'driver', { name: 'two' })
    second.handle.ask()
    const by = await eventually(() => first.asked[0], { what: 'the request' })
    first.handle.give(by)
    await eventually(() => second.handle.role === 'driver', { what: 'the lease' })
    await eventually(() => first.handle.role === 'viewer', { what: 'the loss' })
    await second.send('mine\n')
    await first.waitFor('mine')
  })

  test('[L1] no input is repeated or silently lost while the lease passes back and forth', async () => {
    await using one = runShell(sandboxd, 'cat', { output: 'bytes' })
    await using two = await join(one, 'driver')
    let number = 0
    for (let turn = 0; turn < 20; turn++) {
      const writer = turn % 2 === 0 ? one : two
      if (writer.handle.role !== 'driver') writer.handle.take()
      await eventually(() => writer.handle.role === 'driver', { what: 'the lease' })
      for (let line = 0; line < 5; line++) await writer.send(`line ${number++}\n`)
      await writer.waitFor(`line ${number - 1}\n`)
    }
    const wanted = Array.from({ length: number }, (_, index) => `line ${index}`)
    expect(linesOf(one.text, 'line')).toEqual(wanted)
    await two.waitFor(`line ${number - 1}\n`)
    expect(linesOf(two.text, 'line')).toEqual(wanted)
  })

  test('[L9] input written while the lease was lost is delivered once or reported', async () => {
    await using one = runShell(sandboxd, 'cat')
    await using two = await join(one, 'driver')
    let written = 0
    const writing = (async () => {
      for (let line = 0; line < 2_000 && one.handle.role === 'driver'; line++) {
        await one.send(`${String(line).padStart(6, '0')}\n`)
        written += 7
      }
    })()
    two.handle.take()
    await eventually(() => one.handle.role === 'viewer', { what: 'the loss' })
    // Input of a viewer is refused.
    await eventually(() => two.handle.role === 'driver', { what: 'the lease' })
    await writing
    await two.send('END\n')
    await two.waitFor('END\n')
    const lost = one.inputLost.reduce((sum, { bytes }) => sum + bytes, 0)
    const arrived = two.text.split('\n').filter((line) => /^\d{6}$/.test(line))
    expect(arrived.length * 7 + lost).toBe(written)
    expect(arrived).toEqual(arrived.map((_, index) => String(index).padStart(6, '0')))
  })

  test.each([
    ['input', new TextEncoder().encode('rm -rf\n')],
    ['a resize', { type: 'resize', seq: 1, at: 0, cols: 10, rows: 10 }],
    ['a signal', { type: 'signal', seq: 1, at: 0, signal: 'SIGKILL' }],
    ['end of input', { type: 'eof', seq: 1, at: 0 }],
  ])('[L8] a viewer that sends %s is closed with role_refused and changes nothing', async (_, frame) => {
    await using driver = runShell(sandboxd, 'cat')
    await driver.isAttached()
    await using viewer = new WireClient(sandboxd, `session=${driver.session}&role=viewer`)
    await viewer.hello({ identity: mintHex() })
    await viewer.next('welcome')
    viewer.send(frame)
    expect(await viewer.closed).toEqual({ code: 4430, reason: 'role_refused' })
    await driver.send('still here\n')
    await driver.waitFor('still here')
    expect(driver.text).toBe('still here\n')
  })

  test.each([
    ['take', { type: 'take' }],
    ['a role of its own making', { type: 'role', role: 'driver', epoch: 9, input: { at: 0, seq: 0 } }],
    ['a polluted object', '{"type":"take","__proto__":{"role":"driver"}}'],
  ])('[L11] a connection authorized as viewer never becomes more by %s', async (_, frame) => {
    await using driver = runShell(sandboxd, 'cat')
    await driver.isAttached()
    await using viewer = new WireClient(sandboxd, `session=${driver.session}&role=viewer`)
    await viewer.hello({ identity: mintHex() })
    await viewer.next('welcome')
    viewer.send(frame)
    const { code } = await viewer.closed
    expect([4403, 4402]).toContain(code)
    expect(driver.handle.role).toBe('driver')
  })

  test('[A1] hello may lower the role of the URL and never raise it', async () => {
    await using driver = runShell(sandboxd, 'cat')
    await driver.isAttached()
    await using narrow = new WireClient(sandboxd, `session=${driver.session}&role=driver&take=1`)
    await narrow.hello({ identity: mintHex(), role: 'viewer' })
    expect(await narrow.next('welcome')).toMatchObject({ role: 'viewer', authority: 'driver' })
    await using wide = new WireClient(sandboxd, `session=${driver.session}&role=viewer`)
    await wide.hello({ identity: mintHex(), role: 'driver' })
    expect(await wide.closed).toEqual({ code: 4403, reason: 'forbidden' })
  })

  test('[A4] frames before hello close the connection and reach nothing', async () => {
    await using driver = runShell(sandboxd, 'cat')
    await driver.isAttached()
    await using early = new WireClient(sandboxd, `session=${driver.session}&role=driver&take=1`)
    await early.opened()
    early.send(new TextEncoder().encode('early\n'))
    expect((await early.closed).code).toBe(4402)
    await driver.send('x\n')
    await driver.waitFor('x\n')
    expect(driver.text).toBe('x\n')
  })

  test('a collaborator may type, and its client library sends no resizes or signals', async () => {
    await using driver = runShell(sandboxd, 'cat')
    await using helper = await join(driver, 'collaborator')
    helper.handle.signal('SIGKILL')
    helper.handle.resize(10, 10)
    await helper.send('typed\n')
    await driver.waitFor('typed')
    expect(helper.handle.status.get()).toMatchObject({ kind: 'attached', role: 'collaborator' })
  })

  test.each([
    ['a resize', { type: 'resize', seq: 1, at: 0, cols: 10, rows: 10 }],
    ['a signal', { type: 'signal', seq: 1, at: 0, signal: 'SIGKILL' }],
  ])('[L8] a collaborator that sends %s is closed with role_refused', async (_, frame) => {
    await using driver = runShell(sandboxd, 'cat')
    await driver.isAttached()
    await using helper = new WireClient(sandboxd, `session=${driver.session}&role=collaborator`)
    await helper.hello({ identity: mintHex() })
    await helper.next('welcome')
    helper.send(frame)
    expect(await helper.closed).toEqual({ code: 4430, reason: 'role_refused' })
    await driver.send('alive\n')
    await driver.waitFor('alive')
  })
})

describe('presence', () => {
  test('[L10] reports attachments, the driver and departures to every attachment', async () => {
    await using driver = runShell(sandboxd, 'cat', { name: 'Ada' })
    const viewer = await join(driver, 'viewer', { name: 'Grace' })
    const last = () => driver.presences.at(-1)
    await eventually(() => last()?.attachments.length === 2, { what: 'two attachments' })
    // Behind control the name comes from the credential.
    const [first, second] = sandboxd.sandbox === undefined ? ['Ada', 'Grace'] : ['owner', 'owner']
    expect(last()?.attachments).toMatchObject([
      { role: 'driver', name: first, connected: true },
      { role: 'viewer', name: second, connected: true },
    ])
    expect(last()?.driver).toBe(last()?.attachments[0]?.id ?? '')
    viewer.handle.detach()
    await eventually(() => last()?.attachments.length === 1, { what: 'the viewer to leave' })
  })
})

describe('size', () => {
  test('[T5] of the terminal follows the driver and is sent to viewers', async () => {
    const script = 'stty -echo; while read line; do stty size; done'
    await using driver = runShell(sandboxd, script, { mode: 'pty', cols: 100, rows: 30 })
    await driver.send('\n')
    await driver.waitFor('30 100')
    await using viewer = await join(driver, 'viewer')
    driver.handle.resize(120, 40)
    await driver.send('\n')
    await driver.waitFor('40 120')
    await eventually(() => viewer.sizes.at(-1)?.cols === 120, { what: 'the new size' })
    await using second = new Attached(
      sandboxd,
      { session: driver.session, role: 'driver', take: true },
      { cols: 90, rows: 20 },
    )
    await eventually(() => second.handle.role === 'driver', { what: 'the lease' })
    await second.send('\n')
    await second.waitFor('20 90')
  })
})

describe('terminal queries', () => {
  test("[S9] are answered by the driver only: automatic replies of a collaborator's terminal are dropped", async () => {
    const script = `stty raw -echo; printf '<ready>'; head -c 9 | od -An -c; printf '<done>'`
    await using driver = runShell(sandboxd, script, { mode: 'pty' })
    await driver.waitFor('<ready>')
    await using helper = await join(driver, 'collaborator')
    await helper.send('\x1b[?1;2c\x1b[24;80R\x1bP1$r0m\x1b\\\x1b]11;rgb:0/0/0\x07')
    await helper.send('abc')
    await eventually(() => helper.handle.status.get().kind === 'attached', { what: 'the helper' })
    await driver.send('\x1b[1;1R')
    await driver.waitFor('<done>')
    const seen = driver.text.replace(/[\s\r\n]/g, '')
    expect(seen).toContain('abc')
    expect(seen).toContain('033[1;1R')
  })

  test('[S1] in earlier output are not replayed to a new attachment', async () => {
    const script = `stty raw -echo; printf 'text\\033[c\\033[6n\\033]11;?\\007<ready>'; cat >/dev/null`
    await using driver = runShell(sandboxd, script, { mode: 'pty' })
    await driver.waitFor('<ready>')
    await using late = await join(driver, 'viewer')
    const [screen] = await eventually(() => (late.screens.length > 0 ? late.screens : undefined), {
      what: 'a screen',
    })
    const drawn = new TextDecoder().decode(screen?.bytes)
    expect(drawn).toContain('text<ready>')
    expect(drawn).not.toContain('\x1b[c')
    expect(drawn).not.toContain('\x1b[6n')
    expect(drawn).not.toContain('\x1b]11')
    expect(late.stdout.length).toBe(0)
  })
})

describe('two collaborators', () => {
  test('[I1] that disconnect and resume in turn have every line delivered once and in order', async () => {
    await using driver = runShell(sandboxd, 'cat')
    await driver.isAttached()
    await using proxyA = openFaultProxy({ target: { port: sandboxd.port } })
    await using proxyB = openFaultProxy({ target: { port: sandboxd.port } })
    const open = (port: number) =>
      new Attached(sandboxd, { session: driver.session, role: 'collaborator' }, { port, output: 'digest' })
    await using a = open(proxyA.port)
    await using b = open(proxyB.port)
    await Promise.all([a.isAttached(), b.isAttached()])
    let isCutting = true
    const write = async (client: Attached, prefix: string) => {
      let line = 0
      for (; isCutting; line++) {
        await client.send(`${prefix}${line}\n`)
        // A slow reconnect must not leave more lines than the rest of the test can read.
        await Bun.sleep(1)
      }
      return line
    }
    const cut = async () => {
      for (let turn = 0; turn < 24; turn++) {
        const [proxy, client] = turn % 2 === 0 ? [proxyA, a] : [proxyB, b]
        const before = client.reconnections
        await eventually(() => proxy.disconnectAll(turn % 4 < 2 ? 'reset' : 'fin') > 0, {
          what: 'a connection',
        })
        const isBack = () => client.reconnections > before && client.handle.status.get().kind === 'attached'
        await eventually(isBack, { what: 'the resume' })
      }
      isCutting = false
    }
    const [linesA, linesB] = await Promise.all([write(a, 'a'), write(b, 'b'), cut()])
    await eventually(() => driver.text.split('\n').length > linesA + linesB, { what: 'every line' })
    const wanted = (prefix: string, lines: number) =>
      Array.from({ length: lines }, (_, line) => `${prefix}${line}`)
    expect(linesOf(driver.text, 'a')).toEqual(wanted('a', linesA))
    expect(linesOf(driver.text, 'b')).toEqual(wanted('b', linesB))
    expect(a.reconnections + b.reconnections).toBeGreaterThanOrEqual(24)
  })
})

describe('many connections that resume one identity at once', () => {
  test('[R7] leave exactly one attached, report replaced to the others, and lose no byte', async () => {
    const createId = mintHex()
    const identity = mintHex()
    const script = 'stty raw -echo 2>/dev/null; seq 1 2000; cat'
    const query = new URLSearchParams([
      ['createId', createId],
      ['cmd', 'sh'],
      ['arg', '-c'],
      ['arg', script],
    ])
    await using first = new WireClient(sandboxd, query.toString())
    await first.hello({ identity })
    const { session } = await first.next('welcome')
    const total = 8_893
    await eventually(() => first.outputBytes === total, { what: 'the output' })
    const racers = Array.from({ length: 10 }, () => new WireClient(sandboxd, `session=${String(session)}`))
    await Promise.all(racers.map((racer) => racer.opened()))
    await Promise.all(
      racers.map((racer, index) =>
        racer.hello({ identity, attempt: index + 2, resuming: true, received: 1_000 }),
      ),
    )
    const all = [first, ...racers]
    const isOpen = (client: WireClient) => client.close === undefined
    await eventually(() => all.filter(isOpen).length === 1, { what: 'one to remain' })
    for (const loser of all.filter((client) => !isOpen(client))) {
      expect(loser.close).toEqual({ code: 4433, reason: 'replaced' })
    }
    const [winner] = all.filter(isOpen)
    await eventually(() => winner?.outputBytes === total - 1_000, { what: 'the rest' })
    expect(winner?.text()).toBe(first.text().slice(1_000))
    winner?.send(new TextEncoder().encode('hello\n'))
    await eventually(() => winner?.text().endsWith('hello\n'), { what: 'the echo' })
    const view = (await (await sandboxd.fetch(`/sessions/${String(session)}`)).json()) as {
      attachments: number
    }
    expect(view.attachments).toBe(1)
    await sandboxd.fetch(`/sessions/${String(session)}`, { method: 'DELETE' })
  })
})
