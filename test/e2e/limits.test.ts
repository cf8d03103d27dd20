import { describe, expect, test } from 'bun:test'
import { connectPlain, eventually, rejectionOf, UpgradeRefused } from '@sandwire/testing'
import { Attached, endSession, runShell } from './support/attached.ts'
import { startSandboxd } from './support/sandboxd.ts'
import { mintHex, WireClient } from './support/wire-client.ts'

const WAIT = { timeoutMs: 20_000 }

describe('a limit', () => {
  test('on sessions refuses one more, and lets it in when another has gone', async () => {
    await using sandboxd = await startSandboxd({ args: ['--max-sessions', '2'] })
    await using one = runShell(sandboxd, 'cat')
    await using two = runShell(sandboxd, 'cat')
    await Promise.all([one.isAttached(), two.isAttached()])
    const three = runShell(sandboxd, 'cat')
    expect(await rejectionOf(three.exit)).toMatchObject({ code: 'too_many_sessions' })
    const plain = await rejectionOf(
      connectPlain(sandboxd.socketUrl('/attach?cmd=cat'), { headers: sandboxd.headers }),
    )
    expect(plain).toBeInstanceOf(UpgradeRefused)
    expect(plain).toMatchObject({ status: 429 })
    const body = JSON.stringify({ createId: mintHex(), cmd: 'cat' })
    const posted = await sandboxd.fetch('/sessions', { method: 'POST', body })
    expect([posted.status, posted.headers.get('retry-after')]).toEqual([429, '1'])
    await endSession(sandboxd, one.session)
    await eventually(
      async () => (await sandboxd.fetch('/sessions', { method: 'POST', body })).status === 201,
      { what: 'a free place', ...WAIT },
    )
  })

  test('[B3] on attachments refuses one more, and lets it in when another has left', async () => {
    await using sandboxd = await startSandboxd({ args: ['--max-attachments', '2'] })
    await using one = runShell(sandboxd, 'cat')
    await one.isAttached()
    const two = new Attached(sandboxd, { session: one.session, role: 'viewer' })
    await two.isAttached()
    const three = new Attached(sandboxd, { session: one.session, role: 'viewer' })
    expect(await rejectionOf(three.exit)).toMatchObject({ code: 'too_many_attachments' })
    two.handle.detach()
    await eventually(
      async () => {
        const view = (await (await sandboxd.fetch(`/sessions/${one.session}`)).json()) as {
          attachments: number
        }
        return view.attachments === 1
      },
      { what: 'the second to leave', ...WAIT },
    )
    const four = await new Attached(sandboxd, { session: one.session, role: 'viewer' }).isAttached()
    four.handle.detach()
  })

  test('[F9] on the log bounds what is kept', async () => {
    await using sandboxd = await startSandboxd({ args: ['--log-bytes', '65536'] })
    await using client = runShell(sandboxd, 'head -c 3000000 /dev/zero', { output: 'digest' })
    await client.exit
    expect(client.stdout.length).toBe(3_000_000)
    const view = (await (await sandboxd.fetch(`/sessions/${client.session}`)).json()) as {
      output: { start: number; end: number }
    }
    expect(view.output.end).toBe(3_000_000)
    expect(view.output.end - view.output.start).toBeLessThanOrEqual(65_536)
    await using late = new Attached(sandboxd, { session: client.session })
    await late.exit
    expect(late.gaps).toEqual([{ from: 0, to: view.output.start }])
  })

  test('[B1] on messages closes what is larger', async () => {
    await using sandboxd = await startSandboxd({ args: ['--max-message-bytes', '2048'] })
    await using client = await connectPlain(sandboxd.socketUrl('/attach?cmd=cat'), {
      headers: sandboxd.headers,
    })
    await client.sendInput('x'.repeat(2_000))
    await eventually(() => client.stdout.length === 2_000, { what: 'the echo', ...WAIT })
    await client.sendInput('x'.repeat(4_000)).catch(() => {})
    const { code } = await client.closed
    expect([1006, 1009]).toContain(code)
  })

  test('[B2] on the rate of messages closes with rate_limited', async () => {
    await using sandboxd = await startSandboxd({ args: ['--messages-per-second', '10'] })
    await using driver = runShell(sandboxd, 'cat')
    await driver.isAttached()
    await using flood = new WireClient(sandboxd, `session=${driver.session}&role=viewer`)
    await flood.hello({ identity: mintHex() })
    await flood.next('welcome')
    for (let id = 0; id < 200; id++) flood.send({ type: 'ping', id })
    expect(await flood.closed).toEqual({ code: 4452, reason: 'rate_limited' })
    expect(flood.of('pong').length).toBeLessThan(60)
    expect(driver.handle.status.get().is).toBe('attached')
  })

  test('[B2] on the rate of messages does not count a fast upload', async () => {
    await using sandboxd = await startSandboxd({ args: ['--messages-per-second', '100'] })
    await using client = runShell(sandboxd, 'wc -c')
    await client.sendInBlocks(new Uint8Array(100_000_000), 64 * 1024)
    client.handle.eof()
    await client.exit
    expect(client.text.trim()).toBe('100000000')
    expect(client.reconnections).toBe(0)
  })

  test('on the rate of messages only delays an honest client that writes small pieces', async () => {
    await using sandboxd = await startSandboxd({ args: ['--messages-per-second', '200'] })
    await using client = runShell(sandboxd, 'cat')
    for (let piece = 0; piece < 1_500; piece++) await client.send(`${piece}\n`)
    client.handle.eof()
    await client.exit
    expect(client.text).toBe(Array.from({ length: 1_500 }, (_, piece) => `${piece}\n`).join(''))
  })

  test('on the rate of requests refuses with rate_limited', async () => {
    await using sandboxd = await startSandboxd({ args: ['--requests-per-second', '5'] })
    const answers = await Promise.all(Array.from({ length: 60 }, () => sandboxd.fetch('/sessions')))
    const statuses = answers.map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.headers.get('retry-after')).toBe('1')
    expect(await refused?.json()).toMatchObject({ error: { code: 'rate_limited' } })
  })

  test('[W9] on output slows one attachment down and changes no byte', async () => {
    const bytesPerSecond = 200_000
    await using sandboxd = await startSandboxd({
      args: ['--output-bytes-per-second', String(bytesPerSecond)],
    })
    const startedMs = performance.now()
    await using client = runShell(sandboxd, 'seq 1 60000')
    await client.exit
    // A lower bound holds on any machine: the burst is a quarter of a second's worth.
    const leastMs = (1000 * (client.stdout.length - bytesPerSecond / 4)) / bytesPerSecond
    expect(performance.now() - startedMs).toBeGreaterThan(leastMs * 0.9)
    expect(client.text).toBe(Array.from({ length: 60_000 }, (_, index) => `${index + 1}\n`).join(''))
  })
})
