import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, openFaultProxy, patternAt, verifyPattern } from '@sandwire/testing'
import { runDisconnectStress } from '../fuzz/disconnect-stress.ts'
import { Attached, readShell, runShell } from './support/attached.ts'
import { startWireServer, type WireServer } from './support/wire-server.ts'

/** What is between client and sandboxd; undefined when they connect directly. */
const BETWEEN = process.env['SANDWIRE_E2E']
/** `npm run soak` makes 10,000. */
const DISCONNECTS = BETWEEN === undefined ? 40 : 15
/** Slow and silent connections end at control, so containers add nothing. */
const describeConnection = describe.skipIf(BETWEEN === 'container')
let sandboxd: WireServer

beforeAll(async () => {
  sandboxd = await startWireServer()
})
afterAll(() => sandboxd.stop())

describe('a connection that is broken repeatedly', () => {
  test.concurrent.each([
    { mode: 'pipe', seed: 1 },
    { mode: 'pty', seed: 2 },
  ] as const)(
    `[R14] delivers every byte exactly once in both directions over ${DISCONNECTS} disconnects ($mode)`,
    async ({ mode, seed }) => {
      const result = await runDisconnectStress({ server: sandboxd, mode, seed, disconnects: DISCONNECTS })
      expect(result.disconnects).toBeGreaterThanOrEqual(DISCONNECTS)
      expect(result.read).toBe(result.written)
      expect(result.returned).toBe(result.written)
    },
  )
})

describeConnection('a link that goes silent', () => {
  test('[H3] is detected by the heartbeat and replaced without loss', async () => {
    await using proxy = openFaultProxy({ target: { port: sandboxd.port } })
    await using client = runShell(sandboxd, 'cat', { port: proxy.port, heartbeatMs: 200 })
    await client.send('before\n')
    await client.waitFor('before')
    proxy.setFaults({
      toClient: { blackHole: true },
      toTarget: { blackHole: true },
      newConnections: 'refuse',
    })
    await client.send('during\n')
    await eventually(() => client.reconnections > 0, { what: 'the heartbeat timeout' })
    proxy.disconnectAll('reset')
    proxy.setFaults({ toClient: {}, toTarget: {}, newConnections: 'accept' })
    await client.waitFor('during')
    await client.send('after\n')
    client.handle.eof()
    await client.exit
    expect(client.text).toBe('before\nduring\nafter\n')
  })

  test('[H1] that recovers in time is not replaced and loses nothing', async () => {
    await using proxy = openFaultProxy({ target: { port: sandboxd.port } })
    await using client = runShell(sandboxd, 'cat', { port: proxy.port, heartbeatMs: 200 })
    await client.isAttached()
    proxy.setFaults({ toClient: { blackHole: true }, toTarget: { blackHole: true } })
    await client.send('during\n')
    await Bun.sleep(1_000)
    expect(client.reconnections).toBe(0)
    proxy.setFaults({ toClient: {}, toTarget: {} })
    await client.waitFor('during')
    expect(client.reconnections).toBe(0)
  })
})

describeConnection('a link that carries one byte at a time', () => {
  test.each(['pipe', 'pty'] as const)('[R14] carries every byte (%s)', async (mode) => {
    await using proxy = openFaultProxy({ target: { port: sandboxd.port } })
    proxy.setFaults({ toClient: { sliceBytes: 1 }, toTarget: { sliceBytes: 1 } })
    const input = patternAt(3, 0, 600)
    const script = `stty raw -echo 2>/dev/null; printf '<ready>'; head -c ${input.length}`
    await using client = runShell(sandboxd, script, { mode, port: proxy.port })
    await client.waitFor('<ready>')
    await client.send(input)
    await client.exit
    expect(verifyPattern(3, 0, client.stdout.bytes.subarray(7))).toBeUndefined()
    expect(client.reconnections).toBe(0)
  })
})

describeConnection('a client whose connection ends without a close frame', () => {
  test('[R14] is disconnected by the server too, and resumes', async () => {
    await using proxy = openFaultProxy({ target: { port: sandboxd.port } })
    await using client = runShell(sandboxd, 'cat', { port: proxy.port })
    await client.send('before\n')
    await client.waitFor('before')
    // The default heartbeat would notice it after 30 seconds.
    proxy.disconnectAll('half', 'toTarget')
    await eventually(() => client.reconnections > 0, { what: 'the disconnect' })
    await client.send('after\n')
    await client.waitFor('after')
    expect(client.text).toBe('before\nafter\n')
  })
})

describe('a session', () => {
  test('[R1] outlives its connection and delivers the output produced meanwhile', async () => {
    await using proxy = openFaultProxy({ target: { port: sandboxd.port } })
    await using client = runShell(
      sandboxd,
      'read a; echo "got $a"; until [ -e go ]; do sleep 0.05; done; seq 1 1000; exit 4',
      { port: proxy.port },
    )
    await client.isAttached()
    await client.send('word\n')
    await client.waitFor('got word')
    proxy.setFaults({ newConnections: 'refuse' })
    proxy.disconnectAll('reset')
    await readShell(sandboxd, 'touch go')
    await eventually(
      async () =>
        ((await (await sandboxd.fetch(`/sessions/${client.session}`)).json()) as { state: string }).state ===
        'exited',
      { what: 'the process to end' },
    )
    proxy.setFaults({ newConnections: 'accept' })
    expect(await client.exit).toMatchObject({ code: 4 })
    expect(client.text).toBe(
      `got word\n${Array.from({ length: 1000 }, (_, index) => `${index + 1}\n`).join('')}`,
    )
  })

  test('cannot be resumed with another identity', async () => {
    await using client = runShell(sandboxd, 'cat')
    await client.isAttached()
    await using other = new Attached(sandboxd, { session: client.session, role: 'driver' })
    await other.isAttached()
    expect(other.handle.role).toBe('viewer')
    expect(client.handle.role).toBe('driver')
  })
})
