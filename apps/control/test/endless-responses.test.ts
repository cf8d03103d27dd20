import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { OPEN_MS } from '../src/providers/breaker.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { EndlessResponses } from './support/endless-responses.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { codeIn, JWT_SECRET, linkIn, ApiClient, textIn, UNLIMITED } from './support/api-client.ts'
import { shorten } from './support/shorten.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

const TIMEOUT_MS = 180_000

/** Shorter than in production, so that the test can wait for it. */
const hurry = shorten(
  ['WHOLE_RESPONSE_MS', 'VERSION_MS', 'REFUSAL_MS', 'ERROR_RESPONSE_MS', 'CALL_TIMEOUT_MS'],
  300,
)

describe('a response that never ends', () => {
  let endless: EndlessResponses
  let sandboxes: FakeSandboxes
  let control: RunningControl
  let owner: ApiClient
  let sandbox: string
  let session: string
  beforeAll(async () => {
    endless = new EndlessResponses()
    sandboxes = new FakeSandboxes()
    control = await startControl({
      runner: sandboxes,
      config: { limits: UNLIMITED, alarmMs: 200 },
      bindings: { JWT_SECRET },
      alter: hurry,
    })
    owner = new ApiClient(control, TOKEN)
    sandbox = textIn(await owner.post('/api/sandboxes', { name: 'dev' }), 'id')
    const started = await upgrade(control, '/attach?sandbox=dev&cmd=cat', { subprotocols: ['sandwire.v1'] })
    if (started.kind === 'open') started.socket.reset()
    session = [...sandboxes.sessions][0] ?? ''
  })
  afterEach(async () => {
    sandboxes.intercept = undefined
    control.host.intercept = undefined
    await eventually(() => endless.open === 0, { what: 'all responses to be canceled' })
  })
  afterAll(async () => {
    await control[Symbol.asyncDispose]()
    await sandboxes[Symbol.asyncDispose]()
  })

  /** Makes sandboxd send endless responses for paths with this prefix. */
  function neverEndAt(start: string, status?: number): void {
    sandboxes.intercept = (request) =>
      new URL(request.url).pathname.startsWith(start) ? endless.respond(status) : undefined
  }

  test(
    '(threat T6) does not block the alarm of a sandbox, which still closes the connections of expired grants',
    async () => {
      const bob = await ApiClient.named(control, 'bob')
      const before = endless.started
      neverEndAt('/activity')
      await eventually(() => endless.started > before, { what: 'a poll' })
      const grant = { role: 'collaborator', sandbox: 'dev', expiresSeconds: 1 }
      await bob.post('/api/grants/redeem', { link: linkIn(await owner.post('/api/grants', grant)) })
      const isClosed = (): boolean =>
        sandboxes.seen.some(({ claims }) => claims.path === '/attachments/close')
      await eventually(isClosed, { what: 'the close' })
      await eventually(() => endless.started > before + 3, { what: 'more polls' })
    },
    TIMEOUT_MS,
  )

  test.each([
    ['a session', 200, () => owner.get(`/api/account/sessions/${session}`), '/sessions/'],
    ['the error of a session', 404, () => owner.get(`/api/account/sessions/${session}`), '/sessions/'],
    ['the end of a session', 200, () => owner.delete(`/api/account/sessions/${session}`), '/sessions/'],
    [
      'output',
      200,
      () => owner.get(`/api/sandboxes/${sandbox}/sessions/${session}/output?from=0`),
      '/sessions/',
    ],
    ['a start', 200, () => owner.post(`/api/sandboxes/${sandbox}/sessions`, { cmd: 'cat' }), '/sessions'],
  ] as const)(
    'does not block a request to sandboxd for %s (%d)',
    async (_, status, ask, start) => {
      neverEndAt(start, status)
      expect(codeIn(await ask())).toBe('502 sandbox_unreachable')
    },
    TIMEOUT_MS,
  )

  test(
    'does not block a refused attach',
    async () => {
      neverEndAt('/attach', 404)
      const refused = await upgrade(control, '/attach?sandbox=dev&cmd=cat')
      expect(refusalOf(refused)).toBe('502 sandbox_unreachable')
    },
    TIMEOUT_MS,
  )

  test(
    'does not block the start of a sandbox, which waits for the version of sandboxd',
    async () => {
      await owner.post('/api/sandboxes', { name: 'mute' })
      neverEndAt('/__meta/version')
      const started = await owner.post('/api/sandboxes/mute/sessions', { cmd: 'cat' })
      expect(codeIn(started)).toBe('504 timed_out')
    },
    TIMEOUT_MS,
  )

  test.each(['stat', 'file'])(
    'does not block the error response of a file route (%s)',
    async (route) => {
      neverEndAt('/workspace/', 404)
      expect(codeIn(await owner.get(`/api/workspaces/dev/${route}?path=a`))).toBe('504 timed_out')
    },
    TIMEOUT_MS,
  )

  test.each([
    ['the state of a sandbox', 200],
    ['the error of a sandbox', 500],
  ] as const)(
    'does not block a request to the host for %s, nor the next one',
    async (_, status) => {
      control.host.intercept = ({ method, url }) =>
        method === 'GET' && new URL(url).pathname === `/sandboxes/${sandbox}`
          ? endless.respond(status)
          : undefined
      // A state that was reported a moment ago is shown without a request to the host.
      await eventually(
        async () => codeIn(await owner.get('/api/sandboxes/dev')) === '503 provider_unavailable',
        { what: 'a request to the host' },
      )
      control.host.intercept = undefined
      await eventually(async () => (await owner.post('/api/sandboxes/dev/stop', {})).status === 200, {
        what: 'a stop',
        timeoutMs: 5 * OPEN_MS,
      })
      expect((await owner.post('/api/sandboxes/dev/start', {})).status).toBe(200)
    },
    TIMEOUT_MS,
  )

  test(
    'does not block reading the log of a sandbox',
    async () => {
      control.host.intercept = ({ url }) =>
        new URL(url).pathname.endsWith('/logs') ? endless.respond() : undefined
      expect(codeIn(await owner.get(`/logs/${sandbox}`))).toBe('503 provider_unavailable')
      control.host.intercept = undefined
      await eventually(async () => (await owner.get(`/logs/${sandbox}`)).status === 200, {
        what: 'the log',
        timeoutMs: 5 * OPEN_MS,
      })
    },
    TIMEOUT_MS,
  )
})
