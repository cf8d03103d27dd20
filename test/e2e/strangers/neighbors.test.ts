import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { findBubblewrapProblem } from '../../../apps/host/src/isolation/choose-isolation.ts'
import { type RunningHost, startHost } from '../support/control.ts'
import { type LoopDisk, openLoopDisk } from '../support/loop-disk.ts'
import { mintToken, TestUser, USERS_ENV } from '../support/test-user.ts'
import { UnaffectedSession } from '../support/unaffected-session.ts'

const MEBIBYTE = 1024 ** 2
/** Sandboxes may be promised four times as much. */
const DISK_BYTES = 512 * MEBIBYTE
/** Sandboxes that the machine runs; one account gets half of them at most. */
const RUNNING = 8
const CONNECTIONS = 300
const PUBLIC_URL = 'https://strangers.example'
/** Runs on in the background and keeps its sandbox busy. */
const BURN = 'for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait'
const FILL = 'for i in 1 2; do dd if=/dev/zero of=fill$i bs=1M; sync; sleep 0.3; done 2>&1; true'

/** Sends requests without a valid token over one connection; prints the longest time of a refusal in seconds. */
const FLOOD_GATEWAY = `import http.client, time
gateway = http.client.HTTPConnection('127.0.0.1', 3129)
longest = 0
for each in range(24):
    began = time.monotonic()
    gateway.request('GET', '/')
    response = gateway.getresponse()
    response.read()
    assert response.status == 401
    longest = max(longest, time.monotonic() - began)
    if longest > 4: break
print(longest)
`

const isRoot = process.getuid?.() === 0
const problem = isRoot ? await findBubblewrapProblem() : 'disks of loop devices need root'
if (problem !== undefined) console.error(`Skipped, because ${problem}: neighbors on a public server`)

describe.skipIf(problem !== undefined)('on a public server behind a proxy that passes no address', () => {
  let disk: LoopDisk
  let host: RunningHost
  let eve: TestUser
  let ada: TestUser
  let bob: TestUser
  /** A session of Ada's that must never notice anything. */
  let typing: UnaffectedSession
  const eveSandboxes: string[] = []
  let created = 0

  beforeAll(async () => {
    disk = await openLoopDisk(DISK_BYTES)
    const settings = join(disk.folder, 'settings.json')
    const ceilings = { machine: { running: RUNNING } }
    writeFileSync(settings, JSON.stringify({ ceilings, connections: { total: CONNECTIONS } }), {
      mode: 0o600,
    })
    const env = { ...USERS_ENV, SANDWIRE_PUBLIC_URL: PUBLIC_URL, SANDWIRE_SETTINGS: settings }
    host = await startHost({ data: join(disk.folder, 'data'), env })
    const server = { host, fetch: host.fetch }
    eve = new TestUser(server, mintToken('eve'))
    ada = new TestUser(server, mintToken('ada'))
    bob = new TestUser(server, mintToken('bob'))
    await ada.send('POST', '/api/sandboxes', { name: 'home' })
    await ada.fetch('/api/workspaces/home/file?path=kept.txt', { method: 'PUT', body: 'kept' })
    typing = await UnaffectedSession.open(ada.server('home'))
  })

  afterAll(async () => {
    await typing[Symbol.asyncDispose]()
    await host.stop()
    await disk[Symbol.asyncDispose]()
  })

  /** What a user still gets: a small request, the echo of a key, a file, and a new sandbox. */
  async function expectServed(): Promise<void> {
    expect((await ada.fetch('/api/whoami')).status).toBe(200)
    await typing.check()
    expect(await (await ada.fetch('/api/workspaces/home/file?path=kept.txt')).text()).toBe('kept')
    const name = `new-${created++}`
    await ada.send('POST', '/api/sandboxes', { name })
    expect(await run(ada, name, 'echo ready')).toBe('ready\n')
    await ada.send('DELETE', `/api/sandboxes/${name}`)
    expect(typing.reconnections).toBe(0)
  }

  async function run(user: TestUser, sandbox: string, script: string): Promise<string> {
    const body = { cmd: 'sh', args: ['-c', script] }
    return String((await user.send('POST', `/api/sandboxes/${sandbox}/exec`, body))['output'])
  }

  /** Sends as many requests as quickly as possible; returns the statuses of the responses. */
  async function flood(count: number, send: () => Promise<Response>): Promise<ReadonlySet<number>> {
    const statuses = new Set<number>()
    const one = async (): Promise<void> => {
      const response = await send()
      await response.arrayBuffer()
      statuses.add(response.status)
    }
    await Promise.all(Array.from({ length: count }, one))
    return statuses
  }

  /** Creates sandboxes of Eve until one is refused; returns the ceiling. */
  async function createUntilRefused(settings: object): Promise<string> {
    for (let index = 0; index < 2 * RUNNING; index += 1) {
      const name = `eve-${created++}`
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ name, ...settings })
      const response = await eve.fetch('/api/sandboxes', { method: 'POST', headers, body })
      const answer = (await response.json()) as { error?: { code: string; ceiling?: string } }
      if (answer.error !== undefined) return answer.error.ceiling ?? answer.error.code
      eveSandboxes.push(name)
    }
    return 'none'
  }

  test('an account that starts all it may leaves sandboxes for the others', async () => {
    expect(await createUntilRefused({ limits: { diskBytes: 16 * MEBIBYTE } })).toBe('machine.running')
    expect(eveSandboxes.length).toBeLessThanOrEqual(RUNNING / 2)
    await bob.send('POST', '/api/sandboxes', { name: 'bobs' })
    await expectServed()
  })

  test('a program that floods the credential gateway gets its refusals late', async () => {
    const body = { cmd: 'python3', args: ['-c', FLOOD_GATEWAY], timeoutSeconds: 60 }
    const { output } = await eve.send('POST', `/api/sandboxes/${eveSandboxes[0]}/exec`, body)
    expect(Number(output)).toBeGreaterThan(4)
    await expectServed()
  })

  test('an account that fills its disks leaves space for the others', async () => {
    for (const name of eveSandboxes.splice(0)) await eve.send('DELETE', `/api/sandboxes/${name}`)
    expect(await createUntilRefused({})).toBe('account.diskBytes')
    const filled = Promise.all(eveSandboxes.map((name) => run(eve, name, FILL)))
    for (const output of await filled) expect(output).toContain('No space left on device')
    await expectServed()
    const write = 'dd if=/dev/zero of=mine bs=1M count=32 2>&1 && sync && echo written'
    expect(await run(ada, 'home', write)).toEndWith('written\n')
  })

  test('an account that saves all it may leaves space for the others', async () => {
    for (const name of eveSandboxes.splice(0)) await eve.send('DELETE', `/api/sandboxes/${name}`)
    await eve.send('POST', '/api/sandboxes', { name: 'saves' })
    eveSandboxes.push('saves')
    const saveMore = async (): Promise<unknown> => {
      expect(await run(eve, 'saves', `head -c 32M /dev/urandom > random && echo written`)).toBe('written\n')
      const response = await eve.fetch('/api/sandboxes/saves/checkpoints', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      })
      const { error } = (await response.json()) as { error?: { code: string; ceiling?: string } }
      return error?.ceiling ?? error?.code
    }
    let refusal: unknown
    for (let saves = 0; saves < 16 && refusal === undefined; saves += 1) refusal = await saveMore()
    expect(refusal).toBe('account.storedBytes')
    const { account } = (await eve.send('GET', '/api/account/usage')) as {
      account: { storedBytes: { used: number; limit: number } }
    }
    expect(account.storedBytes.limit).toBeLessThanOrEqual(DISK_BYTES / 4)
    expect(account.storedBytes.used).toBeLessThanOrEqual(account.storedBytes.limit)
    await expectServed()
    await ada.send('POST', '/api/sandboxes/home/checkpoints', {})
  })

  test('an account whose many sessions end at once delays no other', async () => {
    const [name = ''] = eveSandboxes
    const start = (): Promise<Response> =>
      eve.fetch(`/api/sandboxes/${name}/sessions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ cmd: 'cat' }),
      })
    expect(await flood(100, start)).toContain(201)
    const stopped = eve.send('POST', `/api/sandboxes/${name}/stop`)
    await expectServed()
    await stopped
    await eve.send('POST', `/api/sandboxes/${name}/start`)
  })

  test('an account that keeps all its processors busy leaves time for the others', async () => {
    for (const name of eveSandboxes)
      await eve.send('POST', `/api/sandboxes/${name}/sessions`, { cmd: 'sh', args: ['-c', BURN] })
    await expectServed()
    for (const name of eveSandboxes) await eve.send('POST', `/api/sandboxes/${name}/stop`)
  })

  test('an account that floods expensive requests is refused, and no other', async () => {
    const [loud = ''] = eveSandboxes
    const flooded = Promise.all([
      flood(250, () => eve.fetch('/api/audit?limit=1000&action=exec')),
      flood(30, () => eve.fetch(`/logs/${loud}?bytes=1000000`)),
      flood(30, () => eve.fetch('/api/openapi.json')),
      flood(3, () => eve.fetch('/api/sandboxes/saves/checkpoints/rebuild', { method: 'POST' })),
    ])
    await expectServed()
    const statuses = new Set((await flooded).flatMap((each) => [...each]))
    expect(statuses).toEqual(new Set([200, 429]))
  })

  test('strangers that flood it are refused, and no account, however new', async () => {
    const invalid = { authorization: 'Bearer a.b.c' }
    const flooded = Promise.all([
      flood(350, () => fetch(`${host.url}/readyz`)),
      flood(350, () => fetch(`${host.url}/api/whoami`, { headers: invalid })),
    ])
    await expectServed()
    const fresh = new TestUser({ host, fetch: host.fetch }, mintToken('fresh'))
    expect((await fresh.fetch('/api/whoami')).status).toBe(200)
    for (const statuses of await flooded) expect(statuses).toContain(429)
  })

  test('strangers that open more connections than there may be close none in use', async () => {
    let closed = 0
    const sockets = Array.from({ length: 3 * CONNECTIONS }, () => {
      const socket = connect(host.port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.on('close', () => (closed += 1))
      return socket.resume()
    })
    await eventually(() => closed > CONNECTIONS, { what: 'connections to be closed' })
    await expectServed()
    for (const socket of sockets) socket.destroy()
  })

  test('an account sees nothing of others, whether they exist or not', async () => {
    const { id } = (await ada.send('GET', '/api/sandboxes/home')) as { id: string }
    const answers = await Promise.all(
      [id, `${id.slice(0, -4)}0000`, 'home', 'nothing'].map(async (each) => {
        const response = await eve.fetch(`/api/sandboxes/${each}`)
        const { error } = (await response.json()) as { error: { code: string; message: string } }
        return [response.status, error.code, error.message.replace(each, 'NAME')].join(' ')
      }),
    )
    expect(new Set(answers).size).toBe(1)
    expect(answers[0]).toStartWith('404 ')
    const seen = await Promise.all(
      ['/api/sandboxes', '/api/account/usage', '/api/account/sessions', '/api/audit?limit=1000'].map(
        async (path) => JSON.stringify(await eve.send('GET', path)),
      ),
    )
    const others = new RegExp(`${id}|"(home|ada|bob|bobs)"`)
    expect(seen.filter((text) => others.test(text)).map((text) => others.exec(text)?.[0])).toEqual([])
  })
})
