import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { bootControl, prepareControl } from '../../apps/host/src/control/boot.ts'
import { chooseAddresses } from '../../apps/host/src/control/addresses.ts'
import type { Workerd } from '../../apps/host/src/control/workerd.ts'
import { openDataFolder } from '../../apps/host/src/data/data-folder.ts'
import { openKeys } from '../../apps/host/src/data/keys.ts'
import { createLog } from '../../apps/host/src/log.ts'
import { closeConnections } from '../../apps/host/src/slots/close-connections.ts'

const ENTRY = join(import.meta.dir, 'support/stand-in.worker.mjs')

/** A fake sandboxd that echoes WebSocket messages. */
function openEcho(socket: string): Bun.Server<undefined> {
  return Bun.serve({
    unix: socket,
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response('no upgrade')),
    websocket: { message: (socket, message) => void socket.send(message) },
  })
}

/** Opens a WebSocket, sends `hello` and returns the answer. */
function greet(url: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const socket = new WebSocket(url)
  socket.onopen = () => socket.send('hello')
  socket.onmessage = ({ data }) => {
    resolve(String(data))
    socket.close()
  }
  socket.onclose = () => reject(new Error('closed'))
  return promise
}

/** True if a new request gets no answer within 300 ms. */
async function isUnanswered(url: string): Promise<boolean> {
  const init = { keepalive: false, signal: AbortSignal.timeout(300) }
  return fetch(url, init).then(
    () => false,
    () => true,
  )
}

describe('workerd started by the host', () => {
  let folder = ''
  let url = ''
  let control: Workerd
  let lines: string[] = []
  let restarts = 0
  const host = Bun.serve({ unix: `/tmp/stand-in-${process.pid}.sock`, fetch: () => new Response('host') })
  const slots = [0, 1].map((slot) => `/tmp/stand-in-${process.pid}.${slot}`)
  const echo = openEcho(slots[1] ?? '')

  beforeAll(async () => {
    folder = mkdtempSync('/tmp/up-workerd-')
    const data = openDataFolder(folder)
    const prepared = await prepareControl(ENTRY, data.cache, () => undefined)
    const { port, listen } = await chooseAddresses(['127.0.0.1'], 0)
    url = `http://127.0.0.1:${port}`
    lines = []
    control = await bootControl({
      prepared,
      configuration: {
        dataFolder: folder,
        port,
        addresses: ['127.0.0.1'],
        mode: 'local',
        issuers: [],
        secrets: {},
        credentials: {},
        upstreamUrls: [],
        passed: {},
        disk: { overcommit: 4, bytesPerSecond: 0 },
        connections: {},
        backupHours: 0,
      },
      folder: data,
      keys: await openKeys(data, { isNewToken: false }),
      port,
      listen,
      hostSocket: `/tmp/stand-in-${process.pid}.sock`,
      slots,
      gates: join(folder, 'gates'),
      machine: {
        facts: { memoryBytes: 1, milliCpus: 1, pids: 1, diskBytes: 1, diskOvercommit: 1 },
        running: 100,
      },
      log: createLog(
        (line) => lines.push(line),
        () => new Date(0),
      ),
      writeLog: (line) => lines.push(line),
      onRestarted: () => (restarts += 1),
      onRestartFailed: () => undefined,
      onNotice: () => undefined,
    })
  })
  afterAll(async () => {
    await control.end()
    await host.stop(true)
    await echo.stop(true)
    rmSync(folder, { recursive: true })
    rmSync(`/tmp/stand-in-${process.pid}.sock`, { force: true })
  })

  const sendRequest = async (path: string, init?: RequestInit): Promise<string> =>
    (await fetch(`${url}${path}`, init)).text()
  const pid = (): number => JSON.parse(readFileSync(join(folder, 'workerd'), 'utf8')).pid

  test('reaches the host through its Unix socket', async () => {
    expect(await sendRequest('/host')).toBe('host')
  })

  test('removes headers that forge the client or the address', async () => {
    const forged = {
      'mf-original-url': 'http://evil.example/',
      'mf-cf-blob': '{"colo":"evil"}',
      'mf-route-override': 'evil',
      'cf-connecting-ip': '203.0.113.7',
      'x-forwarded-for': '203.0.113.7',
      'x-forwarded-proto': 'https',
      'x-real-ip': '203.0.113.7',
    }
    const seen = JSON.parse(await sendRequest('/', { headers: forged }))
    expect(seen.url).toBe(`${url}/`)
    // By these control notices a proxy that is not configured; it removes them itself.
    const noticed = new Set(['forwarded', 'x-forwarded-for'])
    seen.headers = seen.headers.filter(([name]: readonly string[]) => !noticed.has(name ?? ''))
    expect(JSON.stringify(seen)).not.toMatch(/evil|203\.0\.113\.7/)
    const names = new Set<string>(seen.headers.map(([name]: [string]) => name))
    expect(Object.keys(forged).filter((name) => names.has(name))).toEqual([])
  })

  test('reaches a sandbox through its slot', async () => {
    expect(await sendRequest('/pass')).toBe('no upgrade')
  })

  test('states the slot at a gate, whatever the client sends, also after a restart', async () => {
    const slotSeen = async (slot: number): Promise<unknown> => {
      const unix = join(folder, 'gates', `${slot}.sock`)
      const headers = { 'x-sandwire-slot': '99', 'X-SANDWIRE-SLOT': '98' }
      const seen = (await (await fetch('http://gateway/', { unix, headers })).json()) as [string, string][]
      return seen.filter(([name]) => name.toLowerCase() === 'x-sandwire-slot')
    }
    expect([await slotSeen(0), await slotSeen(1)]).toEqual([
      [['x-sandwire-slot', '0']],
      [['x-sandwire-slot', '1']],
    ])
    const before = restarts
    process.kill(pid(), 'SIGKILL')
    await eventually(() => restarts > before, { what: 'workerd to restart' })
    expect(await slotSeen(1)).toEqual([['x-sandwire-slot', '1']])
  })

  test('blocks all network access of the Worker, loopback included (threat T22)', async () => {
    using witness = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('reached') })
    for (const target of [
      `http://127.0.0.1:${witness.port}/`,
      `http://localhost:${witness.port}/`,
      'http://[::1]/',
      'http://10.0.0.1/',
      'http://169.254.169.254/latest/',
      'http://203.0.113.7/',
      'http://127.0.0.2/',
    ])
      expect(await sendRequest(`/out?url=${target}`)).toBe('blocked')
  })

  test('hides stack and message of an exception (threat T46)', async () => {
    const response = await fetch(`${url}/throw`)
    expect([response.status, await response.text()]).toEqual([500, 'Internal Server Error'])
    expect([...response.headers].join()).not.toContain('canary')
  })

  test('passes a WebSocket through, and restarts on the same port with its state when killed', async () => {
    const passUrl = `${url.replace('http', 'ws')}/pass`
    expect(await greet(passUrl)).toBe('hello')
    const before = Number(await sendRequest('/count'))
    const restartsBefore = restarts
    for (let round = 1; round <= 3; round += 1) {
      const open = new WebSocket(passUrl)
      await new Promise((resolve) => (open.onopen = resolve))
      const closed = new Promise((resolve) => (open.onclose = resolve))
      const killed = pid()
      process.kill(killed, 'SIGKILL')
      await closed
      await eventually(() => restarts === restartsBefore + round, {
        what: 'workerd to restart',
      })
      expect(pid()).not.toBe(killed)
      expect(await greet(passUrl)).toBe('hello')
      expect(Number(await sendRequest('/count'))).toBe(before + round)
    }
  })

  test('closes its connections to sandboxes except those that are excluded', async () => {
    const open = async (): Promise<{ readonly socket: WebSocket; readonly closed: Promise<unknown> }> => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/pass`)
      const closed = new Promise((resolve) => (socket.onclose = resolve))
      await new Promise((resolve) => (socket.onopen = resolve))
      return { socket, closed }
    }
    const [killed, before] = [pid(), restarts]
    // The sandbox in the slot is this process, whose connections are never closed.
    const kept = await open()
    control.closeSandboxConnections(new Set())
    const answer = new Promise<string>(
      (resolve) => (kept.socket.onmessage = ({ data }) => resolve(String(data))),
    )
    kept.socket.send('still here')
    expect(await answer).toBe('still here')
    expect(pid()).toBe(killed)
    control.closeSandboxConnections(new Set(), (workerdPid, spared) =>
      closeConnections(workerdPid, new Set([...spared].filter((each) => each !== process.pid))),
    )
    await kept.closed
    expect(await sendRequest('/host')).toBe('host')
    expect(pid()).toBe(killed)
    // Restarts workerd where the system does not allow closing single connections.
    const dropped = await open()
    control.closeSandboxConnections(new Set(), () => false)
    await dropped.closed
    await eventually(() => restarts === before + 1, { what: 'workerd to restart' })
    expect(pid()).not.toBe(killed)
  })

  test('accepts no requests after stopListening, keeps open connections, and ends', async () => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/pass`)
    await new Promise((resolve) => (socket.onopen = resolve))
    control.stopListening()
    await eventually(() => isUnanswered(url), { what: 'requests to stay unanswered' })
    const answer = new Promise<string>((resolve) => (socket.onmessage = ({ data }) => resolve(String(data))))
    socket.send('still here')
    expect(await answer).toBe('still here')
    const last = pid()
    await control.end()
    expect(() => process.kill(last, 0)).toThrow()
  })
})
