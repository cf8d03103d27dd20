import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, type RawWebSocket } from '@sandwire/testing'
import { type RunningControl } from './support/control.ts'
import { codeIn, linkIn, ApiClient, textIn } from './support/api-client.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'
import { helloText } from './support/wire.ts'
import {
  REVOKED,
  makeSandbox,
  shareWith,
  startControlForUsers,
  startSession,
  watch,
} from './support/sharing.ts'

const TIMEOUT_MS = 180_000

let sandboxes: RealSandboxes
let control: RunningControl
let bob: ApiClient
let sandbox: string
let session: string
beforeAll(async () => {
  sandboxes = new RealSandboxes()
  control = await startControlForUsers(sandboxes)
  bob = await ApiClient.named(control, 'bob')
  sandbox = await makeSandbox(bob, 'dev')
  session = await startSession(bob, 'dev')
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

async function accountOf(caller: ApiClient): Promise<string> {
  return textIn(await caller.get('/api/whoami'), 'account')
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
  let ann: ApiClient
  let outcomes: readonly string[]
  beforeAll(async () => {
    ann = await ApiClient.named(control, 'ann')
    outcomes = await pushAt(await accountOf(ann), 'eve-1')
  }, TIMEOUT_MS)

  test('are limited, do not prevent redeeming a share link, and store nothing when refused', async () => {
    expect(new Set(outcomes)).toEqual(new Set(['made', '429 too_many_grants']))
    const grant = await shareWith(bob, ann, { sandbox: 'dev' })
    const list = JSON.stringify((await ann.get('/api/account/grants')).body)
    expect(list).toContain(grant)
    expect(list.split('"grant"').length - 1).toBe(outcomes.filter((one) => one === 'made').length + 1)
    const eve = await ApiClient.named(control, 'eve-1')
    const made = JSON.stringify((await eve.get('/api/grants?sandbox=of-eve-1-4')).body)
    expect(made).not.toContain(await accountOf(ann))
  })

  test('do not keep a sign-out from any sandbox', async () => {
    const laptop = await ApiClient.named(control, 'ann', { jti: 'laptop' })
    await shareWith(bob, laptop, { sandbox: 'dev' })
    await using socket = await watch(control, laptop, session)
    expect((await laptop.post('/api/signout', undefined)).status).toBe(204)
    expect((await socket.closed).frame).toEqual(REVOKED)
  })

  test('are removed when the account is deleted', async () => {
    const grant = await shareWith(bob, ann, { sandbox: 'dev' })
    const listed = async (): Promise<string> =>
      JSON.stringify((await bob.get('/api/grants?sandbox=dev')).body)
    expect(await listed()).toContain(grant)
    expect((await ann.request('DELETE', '/api/account', { confirm: 'ann' })).status).toBe(200)
    expect(await listed()).not.toContain(grant)
  })
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
          const socket = await watch(control, eve, session)
          sockets.push(socket)
          if (isGreeted) await firstWord(socket)
        }
        for (const caller of [bob, ann]) {
          const socket = await watch(control, caller, session)
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
    const grant = await shareWith(bob, leo, { sandbox: 'dev' })
    await shareWith(bob, lea, { sandbox: 'dev' })
    await using leaves = await watch(control, leo, session)
    await using stays = await watch(control, lea, session)
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
    const grant = await shareWith(bob, lou, { sandbox: 'dev' })
    const eve = await ApiClient.named(control, 'eve')
    const seen = async (id: string) => codeIn(await eve.delete(`/api/account/grants/${id}`))
    const invented = `${'0'.repeat(32)}.${'0'.repeat(20)}`
    for (const id of [grant, invented, `${sandbox}.${'0'.repeat(20)}`, 'x'])
      expect(await seen(id)).toBe('404 not_found')
    expect(codeIn(await bob.delete(`/api/account/grants/${grant}`))).toBe('404 not_found')
    expect((await lou.get(`/api/sandboxes/${sandbox}`)).status).toBe(200)
  })
})
