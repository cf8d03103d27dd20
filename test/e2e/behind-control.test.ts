import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { attach, type OpenSocket, openWebSocket } from '@sandwire/client'
import { eventually } from '@sandwire/testing'
import { type ClaimChanges, type SignedSandboxd, startSignedSandboxd } from './support/signed-sandboxd.ts'
import { mintHex, type WireClient } from './support/wire-client.ts'

const CONTROL: ClaimChanges = { authority: 'control', exec: false, identity: 'control' }
const isRoot = process.getuid?.() === 0

let signed: SignedSandboxd
beforeAll(async () => {
  signed = await startSignedSandboxd()
})
afterAll(() => signed[Symbol.asyncDispose]())

interface Activity {
  readonly attachments: number
  readonly lastInputMs: number | null
  readonly lastOutputMs: number | null
  readonly sessions: readonly {
    readonly id: string
    readonly state: string
    readonly running: boolean
    readonly pinned: boolean
    readonly keepSeconds: number
  }[]
  readonly exits: readonly { readonly session: string; readonly code: number | null; readonly atMs: number }[]
}

async function readActivity(): Promise<Activity> {
  return (await (await signed.fetch('/activity', {}, CONTROL)).json()) as Activity
}

async function start(body: object): Promise<string> {
  const init = { method: 'POST', body: JSON.stringify({ createId: mintHex(), ...body }) }
  return ((await (await signed.fetch('/sessions', init)).json()) as { id: string }).id
}

async function joinAs(id: string, changes: ClaimChanges): Promise<WireClient> {
  const client = await signed.attach(`session=${id}`, changes)
  await client.hello({ identity: mintHex() })
  await client.next('welcome')
  return client
}

function close(filter: unknown): Promise<Response> {
  return signed.fetch('/attachments/close', { method: 'POST', body: JSON.stringify(filter) }, CONTROL)
}

describe('[A8] closing attachments', () => {
  test('closes every attachment of an identity permanently and no other', async () => {
    const [first, second] = await Promise.all([start({ cmd: 'cat' }), start({ cmd: 'cat' })])
    await using ada1 = await joinAs(first, { identity: 'ada' })
    await using ada2 = await joinAs(second, { identity: 'ada' })
    await using bob = await joinAs(first, { identity: 'bob', authority: 'viewer' })
    const answer = await close({ identity: 'ada' })
    expect(await answer.json()).toEqual({ closed: 2 })
    for (const client of [ada1, ada2]) {
      expect(await client.closed).toEqual({ code: 4435, reason: 'revoked' })
      expect(client.of('error')).toMatchObject([{ code: 'revoked', fatal: true }])
    }
    expect(bob.close).toBeUndefined()
    expect(await (await close({ identity: 'ada' })).json()).toEqual({ closed: 0 })
    // The lease is free at once, so the next driver gets it.
    await using carol = await joinAs(first, { identity: 'carol' })
    expect(carol.of('welcome')).toMatchObject([{ role: 'driver' }])
  })

  test('(threat T6) closes the attachments of one sign-in or grant and no others of the same account', async () => {
    const id = await start({ cmd: 'cat' })
    await using laptop = await joinAs(id, { identity: 'ada', login: 'laptop', grant: 'box.g1' })
    await using phone = await joinAs(id, { identity: 'ada', login: 'phone', grant: 'box.g1' })
    await using watched = await joinAs(id, { identity: 'ada', login: 'phone', grant: 'box.g2' })
    expect(await (await close({ identity: 'bob', login: 'laptop' })).json()).toEqual({ closed: 0 })
    expect(await (await close({ login: 'laptop' })).json()).toEqual({ closed: 1 })
    expect(await laptop.closed).toEqual({ code: 4435, reason: 'revoked' })
    expect(await (await close({ grant: 'box.g1' })).json()).toEqual({ closed: 1 })
    expect(await phone.closed).toEqual({ code: 4435, reason: 'revoked' })
    expect(watched.close).toBeUndefined()
    expect((await close({})).status).toBe(400)
  })

  test('(threat T6) ends the sessions of a grant on request, and refuses further ones', async () => {
    const claims = { identity: 'ada', grant: 'box.g9' }
    const create = async (changes: ClaimChanges) => {
      const init = { method: 'POST', body: JSON.stringify({ createId: mintHex(), cmd: 'cat', keep: 600 }) }
      return (await (await signed.fetch('/sessions', init, changes)).json()) as { id: string; code: string }
    }
    const isRunning = async (id: string): Promise<boolean> =>
      (await readActivity()).sessions.some((session) => session.id === id && session.running)
    const [own, other, theirs] = await Promise.all([
      start({ cmd: 'cat', keep: 600 }),
      create({ ...claims, grant: 'box.g8' }),
      create(claims),
    ])
    expect(await isRunning(theirs.id)).toBe(true)
    expect((await close({ identity: 'ada', endSessions: true })).status).toBe(400)
    expect((await close({ grant: claims.grant })).status).toBe(200)
    expect(await isRunning(theirs.id)).toBe(true)
    expect((await close({ grant: claims.grant, endSessions: true })).status).toBe(200)
    await eventually(async () => !(await isRunning(theirs.id)), { what: 'the end' })
    expect([await isRunning(own), await isRunning(other.id)]).toEqual([true, true])
    expect(await create(claims)).toMatchObject({ error: { code: 'revoked' } })
  })

  test('refuses to resume a closed attachment', async () => {
    const id = await start({ cmd: 'cat' })
    const identity = mintHex()
    await using first = await signed.attach(`session=${id}`)
    await first.hello({ identity })
    await first.next('welcome')
    expect(await (await close({ session: id })).json()).toEqual({ closed: 1 })
    await first.closed
    await using again = await signed.attach(`session=${id}`)
    await again.hello({ identity, attempt: 2, resuming: true })
    expect(await again.next('error')).toMatchObject({ code: 'resume_lost' })
  })

  test('closes one attachment of a session', async () => {
    const id = await start({ cmd: 'cat' })
    await using one = await joinAs(id, { identity: 'one' })
    await using two = await joinAs(id, { identity: 'two' })
    const attachment = two.of('welcome')[0]?.['attachment']
    expect(await (await close({ session: id, attachment })).json()).toEqual({ closed: 1 })
    expect((await two.closed).reason).toBe('revoked')
    expect(one.close).toBeUndefined()
  })

  test('closes a connection that has not sent hello', async () => {
    const id = await start({ cmd: 'cat' })
    await using silent = await signed.attach(`session=${id}`, { identity: 'silent' })
    await silent.opened()
    expect(await (await close({ identity: 'silent' })).json()).toEqual({ closed: 1 })
    expect((await silent.closed).reason).toBe('revoked')
  })

  test.each([{}, { all: true }, { attachment: 'a1' }, { identity: 1 }, 'text', null])(
    'refuses %j',
    async (filter) => {
      expect((await close(filter)).status).toBe(400)
    },
  )
})

describe('activity', () => {
  test('reports sessions, pins, last input and output, and exits with their times', async () => {
    const before = Date.now()
    const id = await start({ cmd: 'cat', keep: 77 })
    const ended = await start({ cmd: 'sh', args: ['-c', 'echo bye; exit 5'] })
    await using client = await joinAs(id, { identity: 'typist' })
    client.send(new TextEncoder().encode('hi\n'))
    await eventually(() => client.text().includes('hi'), { what: 'the echo' })
    const activity = await eventually(
      async () => {
        const now = await readActivity()
        return now.exits.some(({ session }) => session === ended) ? now : undefined
      },
      { what: 'the exit' },
    )
    expect(activity.sessions.find((session) => session.id === id)).toMatchObject({
      state: 'running',
      running: true,
      pinned: false,
      keepSeconds: 77,
    })
    expect(activity.sessions.find((session) => session.id === ended)).toMatchObject({ running: false })
    const exit = activity.exits.find(({ session }) => session === ended)
    expect(exit).toMatchObject({ code: 5 })
    for (const time of [exit?.atMs, activity.lastInputMs, activity.lastOutputMs]) {
      expect(time).toBeGreaterThanOrEqual(before - 2_000)
      expect(time).toBeLessThanOrEqual(Date.now() + 2_000)
    }
    expect(activity.attachments).toBeGreaterThanOrEqual(1)
  })

  test('reports the last output time of deleted sessions', async () => {
    await using own = await startSignedSandboxd()
    const init = { method: 'POST', body: JSON.stringify({ createId: mintHex(), cmd: 'echo', args: ['x'] }) }
    const { id } = (await (await own.fetch('/sessions', init)).json()) as { id: string }
    await eventually(
      async () => (await own.fetch(`/sessions/${id}/output`)).headers.get('sandwire-state') === 'exited',
      {
        what: 'the exit',
      },
    )
    await own.fetch(`/sessions/${id}`, { method: 'DELETE' })
    const activity = (await (await own.fetch('/activity', {}, CONTROL)).json()) as Activity
    expect(activity.sessions).toEqual([])
    expect(activity.lastOutputMs).toBeNumber()
  })

  test('[C13] reports a pinned session, started by POST or by attach', async () => {
    const posted = await start({ cmd: 'cat', pin: true })
    await using client = await signed.attach(`cmd=cat&createId=${mintHex()}&pin=1&keep=5`)
    await client.hello({ identity: mintHex() })
    const { session } = await client.next('welcome')
    const { sessions } = await readActivity()
    expect(
      sessions
        .filter(({ pinned }) => pinned)
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual([posted, String(session)].toSorted())
  })

  test('[C13] a create id repeated with another pin value conflicts', async () => {
    const createId = mintHex()
    const post = (body: object) =>
      signed.fetch('/sessions', { method: 'POST', body: JSON.stringify({ createId, cmd: 'cat', ...body }) })
    expect((await post({})).status).toBe(201)
    expect((await post({ pin: true })).status).toBe(409)
    expect((await post({ pin: false })).status).toBe(200)
  })
})

test('stopping sends attachments the reason and kills processes that ignore SIGTERM', async () => {
  await using own = await startSignedSandboxd({
    args: isRoot ? ['--run-as', '65534:65534', '--workspace', '/tmp'] : [],
  })
  const script = encodeURIComponent('trap "" HUP TERM INT; echo ready; while :; do sleep 0.05; done')
  const client = await own.attach(`cmd=sh&arg=-c&arg=${script}&keep=600`)
  await client.hello({ identity: mintHex() })
  await eventually(() => client.text().includes('ready'), { what: 'the process' })
  const { id, pid } = (
    (await (await own.fetch('/sessions', {}, CONTROL)).json()) as {
      sessions: { id: string; pid: number }[]
    }
  ).sessions[0] ?? { id: '', pid: 0 }
  expect(id).not.toBe('')
  own.sandboxd.kill('SIGTERM')
  expect(await client.closed).toEqual({ code: 1012, reason: 'shutting_down' })
  expect(client.of('error')).toMatchObject([
    { code: 'shutting_down', fatal: false },
    { code: 'shutting_down', message: 'The sandbox is stopping', fatal: true },
  ])
  expect(await own.sandboxd.exited).toEqual({ code: 0, signal: null })
  expect(() => process.kill(pid, 0)).toThrow()
})

test('a bundle can be built as another protocol version of sandboxd', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-bundle-'))
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, '../../apps/sandboxd/src/main.ts')],
    target: 'bun',
    outdir: folder,
    define: { SANDWIRE_BUILD_PROTOCOL: '2', SANDWIRE_BUILD_COMPATIBLE_FROM: '1' },
  })
  expect(built.success).toBe(true)
  await using other = await startSignedSandboxd({ program: [process.execPath, join(folder, 'main.js')] })
  const version = await (await other.fetch('/__meta/version', {}, CONTROL)).json()
  expect(version).toMatchObject({ name: 'sandboxd', protocol: 2, compatible_from: 1 })
  const own = await (await signed.fetch('/__meta/version', {}, CONTROL)).json()
  expect(own).toMatchObject({ protocol: 1, compatible_from: 1 })
  rmSync(folder, { recursive: true })
})

describe('[A9] a connection whose token has a reauthorization time', () => {
  test('is closed at that time and resumes with a new token', async () => {
    const id = await start({ cmd: 'cat' })
    const identity = mintHex()
    await using first = await signed.attach(`session=${id}`, { reauthorizeMs: Date.now() + 1_000 })
    await first.hello({ identity })
    await first.next('welcome')
    expect(await first.closed).toEqual({ code: 4436, reason: 'reauthorise' })
    await using again = await signed.attach(`session=${id}`, { reauthorizeMs: Date.now() + 600_000 })
    await again.hello({ identity, attempt: 2, resuming: true })
    expect(await again.next('welcome')).toMatchObject({ role: 'driver' })
  })

  test('[R15] is reopened by the client library at once without losing or repeating a byte', async () => {
    const id = await start({
      cmd: 'sh',
      args: ['-c', 'i=0; while [ $i -lt 400 ]; do echo $i; i=$((i+1)); sleep 0.01; done'],
    })
    let connections = 0
    const statuses: string[] = []
    const openSocket: OpenSocket = (request, events) => {
      connections += 1
      let inner: ReturnType<OpenSocket> | undefined
      const path = request.url.pathname + request.url.search
      void signed.sign('GET', path, { reauthorizeMs: Date.now() + 1_200 }).then((token) => {
        const headers = { authorization: `Bearer ${token}` }
        inner = openWebSocket({ ...request, headers }, events)
      })
      return {
        send: (data) => inner?.send(data),
        close: (code, reason) => inner?.close(code, reason),
      }
    }
    const chunks: Uint8Array[] = []
    const handle = attach({
      url: signed.sandboxd.url,
      request: { session: id },
      onOutput: (_, bytes) => void chunks.push(bytes.slice()),
      openSocket,
    })
    handle.status.subscribe(({ kind }) => void statuses.push(kind))
    expect((await handle.exit).code).toBe(0)
    expect(Buffer.concat(chunks).toString()).toBe(
      Array.from({ length: 400 }, (_, line) => `${line}\n`).join(''),
    )
    expect(connections).toBeGreaterThan(2)
    expect(statuses).not.toContain('reconnecting')
  })
})
