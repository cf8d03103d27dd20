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

/** A sandboxd of one line: whatever comes over the WebSocket goes back. */
function openEcho(socket: string): Bun.Server<undefined> {
  return Bun.serve({
    unix: socket,
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response('no upgrade')),
    websocket: { message: (socket, message) => void socket.send(message) },
  })
}

/** Opens a WebSocket and says what comes back for `hello`. */
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

/** Whether a new request gets no answer within a time that is ample for one. */
async function isUnanswered(url: string): Promise<boolean> {
  const init = { keepalive: false, signal: AbortSignal.timeout(300) }
  return fetch(url, init).then(
    () => false,
    () => true,
  )
}

describe('workerd as the host runs it', () => {
  let folder = ''
  let url = ''
  let control: Workerd
  let lines: string[] = []
  let comebacks = 0
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
        passed: {},
      },
      folder: data,
      keys: await openKeys(data, { isNewToken: false }),
      port,
      listen,
      hostSocket: `/tmp/stand-in-${process.pid}.sock`,
      slots,
      log: createLog(
        (line) => lines.push(line),
        () => new Date(0),
      ),
      writeLog: (line) => lines.push(line),
      onRestarted: () => (comebacks += 1),
      onRestartFailed: () => undefined,
    })
  })
  afterAll(async () => {
    await control.end()
    await host.stop(true)
    await echo.stop(true)
    rmSync(folder, { recursive: true })
    rmSync(`/tmp/stand-in-${process.pid}.sock`, { force: true })
  })

  const ask = async (path: string, init?: RequestInit): Promise<string> =>
    (await fetch(`${url}${path}`, init)).text()
  const pid = (): number => JSON.parse(readFileSync(join(folder, 'workerd'), 'utf8')).pid

  test('reaches the host by its unix socket', async () => {
    expect(await ask('/host')).toBe('host')
  })

  test('believes no header about the client or the address', async () => {
    const forged = {
      'mf-original-url': 'http://evil.example/',
      'mf-cf-blob': '{"colo":"evil"}',
      'mf-route-override': 'evil',
      'cf-connecting-ip': '203.0.113.7',
      'x-forwarded-for': '203.0.113.7',
      'x-forwarded-proto': 'https',
      'x-real-ip': '203.0.113.7',
    }
    const seen = JSON.parse(await ask('/', { headers: forged }))
    expect(seen.url).toBe(`${url}/`)
    expect(JSON.stringify(seen)).not.toMatch(/evil|203\.0\.113\.7/)
    const names = new Set<string>(seen.headers.map(([name]: [string]) => name))
    expect(Object.keys(forged).filter((name) => names.has(name))).toEqual([])
  })

  test('reaches a sandbox by its slot', async () => {
    expect(await ask('/pass')).toBe('no upgrade')
  })

  test('lets the Worker reach no network, not even loopback (threat T22)', async () => {
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
      expect(await ask(`/out?url=${target}`)).toBe('blocked')
  })

  test('shows no stack and no message of a fault (threat T46)', async () => {
    const response = await fetch(`${url}/throw`)
    expect([response.status, await response.text()]).toEqual([500, 'Internal Server Error'])
    expect([...response.headers].join()).not.toContain('canary')
  })

  test('passes a WebSocket through and, killed while one is open, serves again on the same port with its state', async () => {
    const passUrl = `${url.replace('http', 'ws')}/pass`
    expect(await greet(passUrl)).toBe('hello')
    const before = Number(await ask('/count'))
    for (let round = 1; round <= 3; round += 1) {
      const open = new WebSocket(passUrl)
      await new Promise((resolve) => (open.onopen = resolve))
      const closed = new Promise((resolve) => (open.onclose = resolve))
      const killed = pid()
      process.kill(killed, 'SIGKILL')
      await closed
      await eventually(() => comebacks === round, { what: 'workerd to come back', timeoutMs: 20_000 })
      expect(pid()).not.toBe(killed)
      expect(await greet(passUrl)).toBe('hello')
      expect(Number(await ask('/count'))).toBe(before + round)
    }
  })

  test('cuts its connections into sandboxes but for those that are spared', async () => {
    const open = async (): Promise<{ readonly socket: WebSocket; readonly closed: Promise<unknown> }> => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/pass`)
      const closed = new Promise((resolve) => (socket.onclose = resolve))
      await new Promise((resolve) => (socket.onopen = resolve))
      return { socket, closed }
    }
    const [killed, before] = [pid(), comebacks]
    // The sandbox in the slot is this very process, which is always spared.
    const kept = await open()
    control.closeSandboxConnections(new Set())
    const answer = new Promise<string>(
      (resolve) => (kept.socket.onmessage = ({ data }) => resolve(String(data))),
    )
    kept.socket.send('still here')
    expect(await answer).toBe('still here')
    expect(pid()).toBe(killed)
    control.closeSandboxConnections(new Set(), (cutPid, spared) =>
      closeConnections(cutPid, new Set([...spared].filter((each) => each !== process.pid))),
    )
    await kept.closed
    expect(await ask('/host')).toBe('host')
    expect(pid()).toBe(killed)
    // Where the machine does not let it.
    const cut = await open()
    control.closeSandboxConnections(new Set(), () => false)
    await cut.closed
    await eventually(() => comebacks === before + 1, { what: 'workerd to come back', timeoutMs: 20_000 })
    expect(pid()).not.toBe(killed)
  })

  test('takes no more requests once its doors are closed, lets open connections be, and ends', async () => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/pass`)
    await new Promise((resolve) => (socket.onopen = resolve))
    control.stopListening()
    await eventually(() => isUnanswered(url), { what: 'requests to stay unanswered', timeoutMs: 10_000 })
    const answer = new Promise<string>((resolve) => (socket.onmessage = ({ data }) => resolve(String(data))))
    socket.send('still here')
    expect(await answer).toBe('still here')
    const last = pid()
    await control.end()
    expect(() => process.kill(last, 0)).toThrow()
  })
})
