import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, type RawWebSocket } from '@sandwire/testing'
import { type RunningControl, startControl } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { codeIn, JWT_SECRET, linkIn, ApiClient, textIn, UNLIMITED } from './support/api-client.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'
import { helloText } from './support/wire.ts'

const REVOKED = { code: 4435, reason: 'revoked' }
const TIMEOUT_MS = 60_000

let sandboxes: RealSandboxes
let control: RunningControl
let bob: ApiClient
let sandbox: string
let session: string
beforeAll(async () => {
  sandboxes = new RealSandboxes()
  control = await startControl({
    runner: sandboxes,
    config: { limits: UNLIMITED },
    bindings: { JWT_SECRET },
  })
  bob = await ApiClient.named(control, 'bob')
  sandbox = textIn(await bob.post('/api/sandboxes', { name: 'dev' }), 'id')
  session = textIn(await bob.post('/api/sandboxes/dev/sessions', { cmd: 'cat', keep: 600 }), 'id')
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

async function watch(caller: ApiClient): Promise<RawWebSocket> {
  const { headers } = caller
  const path = `/attach?session=${session}`
  const handshake = await upgrade(control, path, { subprotocols: ['sandwire.v1'], headers })
  if (handshake.kind !== 'open') throw new Error(`Expected a socket: ${refusalOf(handshake)}`)
  return handshake.socket
}

async function accountOf(caller: ApiClient): Promise<string> {
  return textIn(await caller.get('/api/whoami'), 'account')
}

async function shareWith(caller: ApiClient): Promise<string> {
  const made = await bob.post('/api/grants', { sandbox: 'dev' })
  expect((await caller.post('/api/grants/redeem', { link: linkIn(made) })).status).toBe(200)
  return textIn(made, 'grant')
}

/** Another account creates as many grants for an account as it can; returns one outcome per grant. */
async function pushAt(account: string, name: string): Promise<readonly string[]> {
  const eve = await ApiClient.named(control, name)
  const outcomes: string[] = []
  for (let each = 0; each < 5; each++) {
    const own = `of-${name}-${each}`
    await eve.post('/api/sandboxes', { name: own, start: false })
    const ask = () => eve.post('/api/grants', { sandbox: own, account })
    const all = await Promise.all(Array.from({ length: 64 }, ask))
    outcomes.push(...all.map((one) => (one.status === 201 ? 'made' : codeIn(one))))
  }
  return outcomes
}

describe('unwanted grants to an account (threat T6)', () => {
  test(
    'are limited, and a sign-out still reaches every sandbox',
    async () => {
      const ann = await ApiClient.named(control, 'ann', { jti: 'laptop' })
      await shareWith(ann)
      const outcomes = await pushAt(await accountOf(ann), 'eve-1')
      expect(new Set(outcomes)).toEqual(new Set(['made', '429 too_many_grants']))
      await using socket = await watch(ann)
      expect((await ann.post('/api/signout', undefined)).status).toBe(204)
      expect((await socket.closed).frame).toEqual(REVOKED)
    },
    TIMEOUT_MS,
  )

  test(
    'are removed when the account is deleted',
    async () => {
      const ada = await ApiClient.named(control, 'ada')
      const grant = await shareWith(ada)
      await pushAt(await accountOf(ada), 'eve-2')
      expect((await ada.request('DELETE', '/api/account', { confirm: 'ada' })).status).toBe(200)
      expect(JSON.stringify((await bob.get('/api/grants?sandbox=dev')).body)).not.toContain(grant)
    },
    TIMEOUT_MS,
  )

  test(
    'do not prevent redeeming a share link, and store nothing when refused',
    async () => {
      const abe = await ApiClient.named(control, 'abe')
      const outcomes = await pushAt(await accountOf(abe), 'eve-3')
      const grant = await shareWith(abe)
      const list = JSON.stringify((await abe.get('/api/account/grants')).body)
      expect(list).toContain(grant)
      expect(list.split('"grant"').length - 1).toBe(outcomes.filter((one) => one === 'made').length + 1)
      const eve = await ApiClient.named(control, 'eve-3')
      const made = JSON.stringify((await eve.get('/api/grants?sandbox=of-eve-3-4')).body)
      expect(made).not.toContain(await accountOf(abe))
    },
    TIMEOUT_MS,
  )
})

describe('a viewer who opens the maximum number of sockets', () => {
  /** The first message of the server, to a hello or unprompted. */
  async function firstWord(socket: RawWebSocket): Promise<string> {
    await socket
      .sendFrame({ opcode: 1, payload: new TextEncoder().encode(helloText()) })
      .catch(() => undefined)
    const frame: unknown = JSON.parse(new TextDecoder().decode((await socket.nextFrame()).payload))
    const { type, code }: { type?: unknown; code?: unknown } = Object(frame)
    return String(code ?? type)
  }
  async function give(name: string): Promise<ApiClient> {
    const caller = await ApiClient.named(control, name)
    const made = await bob.post('/api/grants', { session })
    expect((await caller.post('/api/grants/redeem', { link: linkIn(made) })).status).toBe(200)
    return caller
  }

  test.each([
    ['attached', 66, true],
    ['silent', 130, false],
  ])(
    'does not lock out the owner or others (%s)',
    async (_, count, isGreeted) => {
      const [eve, ann] = [await give(`eve-of-${count}`), await give(`ann-of-${count}`)]
      const sockets: RawWebSocket[] = []
      try {
        for (let each = 0; each < count; each += 1) {
          const socket = await watch(eve)
          sockets.push(socket)
          if (isGreeted) await firstWord(socket)
        }
        for (const caller of [bob, ann]) {
          const socket = await watch(caller)
          sockets.push(socket)
          expect(await firstWord(socket)).toBe('welcome')
        }
      } finally {
        for (const socket of sockets) socket.reset()
      }
    },
    TIMEOUT_MS,
  )
})

describe('leaving a shared sandbox', () => {
  test('ends the grant and its connections, and nothing else (threat T6)', async () => {
    const [leo, lea] = [await ApiClient.named(control, 'leo'), await ApiClient.named(control, 'lea')]
    const grant = await shareWith(leo)
    await shareWith(lea)
    await using leaves = await watch(leo)
    await using stays = await watch(lea)
    expect((await leo.delete(`/api/account/grants/${grant}`)).status).toBe(204)
    expect((await leaves.closed).frame).toEqual(REVOKED)
    await stays.sendFrame({ opcode: 9, payload: new Uint8Array() })
    expect((await stays.nextFrame()).opcode).toBe(10)
    expect(codeIn(await leo.get(`/api/sandboxes/${sandbox}`))).toBe('404 sandbox_not_found')
    expect((await leo.get('/api/account/grants')).body).toEqual({ grants: [] })
    expect(JSON.stringify((await bob.get('/api/grants?sandbox=dev')).body)).not.toContain(grant)
    await eventually(
      async () => {
        const rows = JSON.stringify((await bob.get('/api/audit?action=grant.leave')).body)
        return rows.includes(grant) && rows.includes('"actorName":"leo"')
      },
      { what: 'the row to arrive' },
    )
  })

  test('is possible for the holder of the grant only; others get not found (threat T4)', async () => {
    const lou = await ApiClient.named(control, 'lou')
    const grant = await shareWith(lou)
    const eve = await ApiClient.named(control, 'eve')
    const seen = async (id: string) => codeIn(await eve.delete(`/api/account/grants/${id}`))
    const invented = `${'0'.repeat(32)}.${'0'.repeat(20)}`
    for (const id of [grant, invented, `${sandbox}.${'0'.repeat(20)}`, 'x'])
      expect(await seen(id)).toBe('404 not_found')
    expect(codeIn(await bob.delete(`/api/account/grants/${grant}`))).toBe('404 not_found')
    expect((await lou.get(`/api/sandboxes/${sandbox}`)).status).toBe(200)
  })
})
