import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { eventually, rejectionOf } from '@sandwire/testing'
import { findFakeSpritesProblem } from '@sandwire/testing/fake-sprites'
import type { SessionRequest, SessionStart } from '../src/providers/provider.ts'
import {
  type FakeClient,
  openSpritesProvider,
  SANDBOX,
  type SpritesUnderTest,
} from './support/fake-sprites-provider.ts'

const problem = findFakeSpritesProblem()
const START: SessionStart = {
  cmd: 'sh',
  args: [],
  env: {},
  keepSeconds: 60,
  lifetimeSeconds: 0,
  idleSeconds: 0,
}
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const newSession = (): string =>
  `${SANDBOX}.${[...crypto.getRandomValues(new Uint8Array(26))].map((byte) => ALPHABET[byte % 32]).join('')}`

describe.skipIf(problem !== undefined)(
  `terminals of the exec API${problem === undefined ? '' : ` (${problem})`}`,
  () => {
    let made: SpritesUnderTest
    /** Clock of the provider: the real one, and what a test adds. */
    let aheadMs = 0
    beforeAll(async () => {
      made = await openSpritesProvider('dev', { nowMs: () => Date.now() + aheadMs })
      await made.provider.start({
        id: SANDBOX,
        name: 'dev',
        publicKey: 'A'.repeat(43),
        env: {},
        network: { policy: 'open', allow: [] },
        limits: DEFAULT_SANDBOX_LIMITS,
      })
    })
    afterAll(() => made[Symbol.asyncDispose]())

    const request = (over: Partial<SessionRequest> = {}): SessionRequest => ({
      session: newSession(),
      kind: 'pty',
      name: 'token',
      userName: 'Ada',
      authorization: { identity: 'ada' },
      authority: 'driver',
      heartbeatSeconds: 30,
      requestId: 'r-1',
      ...over,
    })
    /** Opens a terminal with the provider of one object. */
    const open = async (asked: SessionRequest, provider = made.provider): Promise<FakeClient> => {
      await provider.execSessions.open(asked)
      const client = made.clients.at(-1)
      if (client === undefined) throw new Error('No client was accepted')
      return client
    }
    const begin = async (
      over: Partial<SessionStart> = {},
    ): Promise<{ client: FakeClient; session: string }> => {
      const asked = request({ start: { ...START, ...over } })
      return { client: await open(asked), session: asked.session }
    }
    const shows = (client: FakeClient, expected: string) =>
      eventually(() => client.text('output').includes(expected), { what: expected })
    const ends = (client: FakeClient) => eventually(() => client.closed, { what: 'the end' })
    const execs = () => made.api.sprite('dev').sessions

    test('start as their template says, type, resize, and exit last', async () => {
      const { client } = await begin({
        args: ['-c', 'echo "$GREETING $TERM $PWD"; read line; stty size; exit 5'],
        env: { GREETING: 'hi' },
      })
      await shows(client, 'hi xterm-256color /home/sprite/workspace')
      client.send({ type: 'resize', cols: 111, rows: 33 })
      client.type('\n')
      await shows(client, '33 111')
      await eventually(() => client.first('exit'), { what: 'the exit' })
      expect(client.messages[0]).toEqual({ type: 'session', session_id: 'token' })
      expect(client.messages.at(-1)).toEqual({ type: 'exit', code: 5, session_id: 'token' })
      client.send({ type: 'ping' })
      expect(client.messages.at(-1)).toEqual({ type: 'pong' })
      expect(client.closed).toBeUndefined()
      client.disconnect()
    })

    test("run nothing but the server's template: its id is logged with that of the request, and nothing of the client is on the command line", async () => {
      const requestIds: (string | null)[] = []
      made.api.behavior.intercept = ({ headers }) => {
        requestIds.push(headers.get('x-request-id'))
        return undefined
      }
      const { client } = await begin({ template: 'agent', args: ['-c', 'cat'] })
      made.api.behavior.intercept = undefined
      expect(requestIds).toEqual(['r-1'])
      const { path } = made.api.requests.findLast((each) => each.path.includes('/exec?')) ?? { path: '' }
      const query = new URLSearchParams(path.split('?')[1])
      expect(query.getAll('cmd').slice(2)).toEqual(['sh', '-c', 'cat'])
      const line = made.logged.findLast((each) => each.includes('exec_started'))
      expect(line).toContain('"template":"agent"')
      expect(line).toContain('"request_id":"r-1"')
      expect(made.logged.join()).not.toContain('/exec?')
      client.disconnect()
    })

    test('continue without their client, who finds the earlier output', async () => {
      const { client, session } = await begin()
      client.type('echo be""fore\n')
      await shows(client, 'before')
      client.disconnect()
      await eventually(
        () => made.provider.execSessions.list().some((each) => each.id === session && each.attachments === 0),
        { what: 'the detach' },
      )
      const again = await open(request({ session }))
      await eventually(() => again.text('history').includes('before'), { what: 'the history' })
      again.type('echo af""ter\n')
      await shows(again, 'after')
      again.disconnect()
    })

    test('are found by another instance of the object', async () => {
      const { client, session } = await begin()
      client.type('echo ma""rk\n')
      await shows(client, 'mark')
      made.api.sprite('dev').disconnectAll()
      expect(await ends(client)).toEqual({ code: 4006, reason: 'sandbox_unreachable' })
      const again = await open(request({ session }), made.reopen())
      await eventually(() => again.text('history').includes('mark'), { what: 'the history' })
      again.disconnect()
    })

    test('are missing once the process is gone, or another one has its id', async () => {
      const { client, session } = await begin()
      client.disconnect()
      const [exec] = [...execs().values()].slice(-1)
      exec?.signal('SIGKILL')
      await exec?.ended
      expect(await rejectionOf(made.provider.execSessions.open(request({ session })))).toMatchObject({
        code: 'session_not_found',
      })
      const other = await begin()
      other.client.disconnect()
      const [recycled] = [...execs().values()].slice(-1)
      if (recycled !== undefined) Object.assign(recycled, { createdAt: recycled.createdAt - 60_000 })
      expect(
        await rejectionOf(made.provider.execSessions.open(request({ session: other.session }))),
      ).toMatchObject({
        code: 'session_not_found',
      })
      expect(await rejectionOf(made.provider.execSessions.open(request()))).toMatchObject({
        code: 'session_not_found',
      })
    })

    test('end some time after their last client, and ask to be collected then', async () => {
      const { client, session } = await begin({ keepSeconds: 60 })
      client.disconnect()
      expect(made.wakes.at(-1)).toBeGreaterThan(Date.now() + 55_000)
      await made.provider.execSessions.collect()
      expect(made.provider.execSessions.has(session)).toBe(true)
      aheadMs = 61_000
      await made.provider.execSessions.collect()
      aheadMs = 0
      expect(made.provider.execSessions.has(session)).toBe(false)
      expect(await rejectionOf(made.provider.execSessions.open(request({ session })))).toMatchObject({
        code: 'session_not_found',
      })
    })

    test.each([
      ['their lifetime is over', { lifetimeSeconds: 100 }],
      ['they were idle for too long', { idleSeconds: 100 }],
    ])('end while a client is attached when %s', async (_, over) => {
      const { client } = await begin(over)
      await made.provider.execSessions.collect()
      expect(client.first('exit')).toBeUndefined()
      aheadMs = 101_000
      await made.provider.execSessions.collect()
      aheadMs = 0
      await eventually(() => client.first('exit'), { what: 'the exit' })
      client.disconnect()
    })

    test('are ended as orphans when control has lost their entry', async () => {
      const { client, session } = await begin()
      client.disconnect()
      const { client: other, session: due } = await begin()
      other.disconnect()
      const before = execs().size
      // Another object's memory of the sandbox has only one of them.
      made.execs.remove(session)
      await made.provider.execSessions.end(due)
      await eventually(() => execs().size === before - 2, { what: 'both ends' })
    })

    test('survive 503s and broken connections while a client attaches', async () => {
      const { client, session } = await begin()
      client.type('echo he""re\n')
      await shows(client, 'here')
      client.disconnect()
      let failures = 2
      made.api.behavior.intercept = ({ url }) =>
        url.includes('/exec/') && failures-- > 0 ? new Response('RAW', { status: 503 }) : undefined
      const again = await open(request({ session }))
      await eventually(() => again.text('history').includes('here'), { what: 'the history' })
      again.disconnect()
      made.api.behavior.intercept = ({ url }) =>
        url.includes('/exec/') ? new Response('RAW', { status: 503 }) : undefined
      const refused = await rejectionOf(made.provider.execSessions.open(request({ session })))
      expect(refused).toMatchObject({ code: 'provider_unavailable' })
      expect(String(refused)).not.toContain('RAW')
      made.api.behavior.intercept = undefined
      made.breaker.succeeded()
      expect(made.counts.get('sandwire_sprites_exec_attaches_total attach provider_unavailable')).toBe(1)
      expect(made.provider.execSessions.has(session)).toBe(true)
    })

    test('continue through a freeze, and until their client leaves when the API token ends', async () => {
      const { client, session } = await begin({ args: ['-c', 'echo re""ady; cat'] })
      await shows(client, 'ready')
      made.api.sprite('dev').freeze()
      await ends(client)
      const thawed = await open(request({ session }))
      thawed.type('thawed\n')
      await shows(thawed, 'thawed')
      const { token } = made.api
      made.api.token = 'renewed'
      thawed.type('still here\n')
      await shows(thawed, 'still here')
      const refused = await rejectionOf(made.provider.execSessions.open(request({ session })))
      expect(refused).toMatchObject({ problem: 'bad_token' })
      expect(String(refused)).not.toContain(token)
      expect(thawed.closed).toBeUndefined()
      made.api.token = token
      thawed.disconnect()
      await made.provider.execSessions.end(session)
    })

    test('are bounded in number', async () => {
      const many = await Promise.all(
        Array.from({ length: 20 - made.provider.execSessions.list().length }, () => begin()),
      )
      expect(await rejectionOf(begin())).toMatchObject({ code: 'too_many_sessions' })
      for (const { client } of many) client.disconnect()
      await made.provider.execSessions.endAll()
      expect(made.provider.execSessions.list()).toEqual([])
    })

    test('close the connections of an account whose access was revoked, and end what its grant started', async () => {
      const start = { ...START }
      const asked = request({ start, authorization: { identity: 'bob', grant: 'g1' } })
      const guest = await open(asked)
      const owner = await open(request({ session: asked.session }))
      const before = execs().size
      made.provider.execSessions.disconnect({ grant: 'g1', endSessions: true })
      expect(guest.closed).toEqual({ code: 4008, reason: 'revoked' })
      await eventually(() => owner.first('exit'), { what: 'the end of the process' })
      expect(owner.closed).toBeUndefined()
      await eventually(() => execs().size === before - 1, { what: 'the end' })
      owner.disconnect()
    })

    test('let viewers watch only', async () => {
      const { client, session } = await begin()
      const viewer = await open(request({ session, authority: 'viewer', authorization: { identity: 'bob' } }))
      viewer.type('echo "in""trusion"\n')
      await eventually(() => viewer.text('error') !== '', { what: 'the refusal' })
      client.type('echo "do""ne"\n')
      await shows(viewer, 'done')
      expect(viewer.text('output')).not.toContain('trusion')
      for (const each of [client, viewer]) each.disconnect()
    })

    test('close a client that gets more output than may wait for it, and continue', async () => {
      const { client, session } = await begin({
        args: ['-c', 'head -c 20000000 /dev/zero | tr "\\0" x; echo; echo fin""ished; cat'],
      })
      expect(await ends(client)).toEqual({ code: 4005, reason: 'rate_limited' })
      const again = await open(request({ session }))
      await eventually(
        () => `${again.text('history')}${again.text('output')}`.includes('finished') || again.closed,
        { what: 'the rest' },
      )
      again.disconnect()
      expect(again.closed).toBeUndefined()
    })

    test('take turns: one that floods does not delay another', async () => {
      const flood = await begin({ args: ['-c', 'while :; do head -c 100000 /dev/zero | tr "\\0" x; done'] })
      const { client } = await begin({ args: ['-c', 'echo re""ady; cat'] })
      await shows(client, 'ready')
      client.type('ping-through\n')
      await shows(client, 'ping-through')
      flood.client.disconnect()
      client.disconnect()
      await made.provider.execSessions.endAll()
    })

    test('end with the sandbox', async () => {
      const { client } = await begin()
      await made.provider.stop(SANDBOX, 'r')
      expect(execs().size).toBe(0)
      expect(made.provider.execSessions.list()).toEqual([])
      expect(client.first('exit') ?? client.closed).toBeDefined()
    })
  },
)

describe.skipIf(problem !== undefined)('terminals with other behaviors of the API', () => {
  test('report the exit though the connection drops after it, the id is a number and its description comes late', async () => {
    await using made = await openSpritesProvider()
    Object.assign(made.api.behavior, {
      execEnd: 'drop',
      hasNumericSessionId: true,
      sessionInfoMs: 100,
      sendsDebug: false,
    })
    const start = { ...START, args: ['-c', 'read line; echo "got $line"; exit 9'] }
    const session = newSession()
    const asked: SessionRequest = {
      session,
      kind: 'pty',
      start,
      name: 'token',
      userName: 'Ada',
      authorization: { identity: 'ada' },
      authority: 'driver',
      heartbeatSeconds: 30,
      requestId: 'r',
    }
    const { id, name, publicKey } = { id: SANDBOX, name: 'dev', publicKey: 'A'.repeat(43) }
    const network = { policy: 'open', allow: [] } as const
    await made.provider.start({ id, name, publicKey, env: {}, network, limits: DEFAULT_SANDBOX_LIMITS })
    await made.provider.execSessions.open(asked)
    const [client] = made.clients
    client?.type('x\n')
    await eventually(() => client?.first('exit'), { what: 'the exit' })
    expect(client?.text('output')).toContain('got x')
    expect(client?.first('exit')).toMatchObject({ code: 9 })
  })
})
