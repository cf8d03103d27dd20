import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { StartSpec } from '@sandwire/internal-api'
import { eventually, type RawHandshake } from '@sandwire/testing'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { JWT_SECRET, linkIn, ApiClient, textIn, type ApiResponse } from './support/api-client.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'
import { fieldOf } from './support/json.ts'

const V1 = ['sandwire.v1']
const SESSION_TOKEN_SECRET = `k1:${Buffer.alloc(32, 9).toString('base64')}`

interface Row {
  readonly actorName: string
  readonly action: string
  readonly session: string | null
  readonly outcome: string
  readonly code: string | null
}

/** Sandboxes whose start can be delayed. */
class HeldSandboxes extends RealSandboxes {
  starts = 0
  held: Promise<void> | undefined

  override async start(spec: StartSpec): Promise<string> {
    this.starts += 1
    await this.held
    return super.start(spec)
  }
}

let sandboxes: HeldSandboxes
let control: RunningControl
let owner: ApiClient
let names = 0
beforeAll(async () => {
  sandboxes = new HeldSandboxes()
  control = await startControl({
    runner: sandboxes,
    bindings: { JWT_SECRET, SESSION_TOKEN_SECRET },
    config: { commands: { blocked: ['reboot'] } },
  })
  owner = new ApiClient(control, TOKEN)
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

async function make(start = true): Promise<string> {
  names += 1
  const made = await owner.post('/api/sandboxes', { name: `s${names}`, start })
  expect(made.status).toBe(201)
  return textIn(made, 'id')
}

async function share(sandbox: string, role: string, to: ApiClient): Promise<string> {
  const grant = await owner.post('/api/grants', { sandbox, role })
  expect((await to.post('/api/grants/redeem', { link: linkIn(grant) })).status).toBe(200)
  return textIn(grant, 'grant')
}

async function startCat(sandbox: string): Promise<{ readonly id: string; readonly token: string }> {
  const started = await owner.post(`/api/sandboxes/${sandbox}/sessions`, { cmd: 'cat' })
  expect(started.status).toBe(201)
  return { id: textIn(started, 'id'), token: textIn(started, 'token') }
}

/** Rows of a sandbox as `actor: action outcome code`, once there is one of the action. */
async function rowsOf(
  sandbox: string,
  action: string,
): Promise<readonly (Row & { readonly text: string })[]> {
  const read = async (): Promise<readonly Row[] | undefined> => {
    const { body } = await owner.get(`/api/audit?limit=20&sandbox=${sandbox}&action=${action}`)
    const rows = fieldOf(body, 'rows') as readonly Row[] | undefined
    return rows?.length === 0 ? undefined : rows
  }
  // The audit is an expensive request.
  const rows = await eventually(read, { what: `a row ${action}`, intervalMs: 250 })
  return rows.map((row) => ({
    ...row,
    text: `${row.actorName}: ${row.outcome}${row.code === null ? '' : ` ${row.code}`}`,
  }))
}
const textsOf = async (sandbox: string, action: string): Promise<readonly string[]> =>
  (await rowsOf(sandbox, action)).map(({ text }) => text)

describe('the audit of long-running requests', () => {
  /** Runs a command of an account and resolves when it has started. */
  async function running(
    sandbox: string,
    caller: ApiClient,
  ): Promise<{ readonly answer: Promise<ApiResponse> }> {
    const answer = caller.post(`/api/sandboxes/${sandbox}/exec`, { cmd: 'sleep', args: ['3600'] })
    const isThere = async (): Promise<boolean> => {
      const { body } = await owner.get('/api/account/sessions')
      return JSON.stringify(body).includes(`"id":"${sandbox}.`)
    }
    await eventually(isThere, { what: 'the command to run' })
    return { answer }
  }

  test.each([
    ['leaves', (bob: ApiClient, grant: string) => bob.delete(`/api/account/grants/${grant}`)],
    ['signs out', (bob: ApiClient) => bob.post('/api/signout', undefined)],
    ['loses access', (_: ApiClient, grant: string) => owner.delete(`/api/grants/${grant}`)],
  ])('(threat T50) records a command as allowed when its account %s before it ends', async (how, go) => {
    const bob = await ApiClient.named(control, how.replaceAll(' ', '-'))
    const sandbox = await make()
    const grant = await share(sandbox, 'collaborator', bob)
    const { answer } = await running(sandbox, bob)
    expect((await go(bob, grant)).status).toBe(204)
    expect((await answer).status).toBeGreaterThan(400)
    expect(await textsOf(sandbox, 'exec')).toEqual([`${how.replaceAll(' ', '-')}: allowed`])
  })

  test('(threat T50) records a command whose sandbox is destroyed while it runs', async () => {
    const bob = await ApiClient.named(control, 'late')
    const sandbox = await make()
    await share(sandbox, 'collaborator', bob)
    const { answer } = await running(sandbox, bob)
    expect((await owner.delete(`/api/sandboxes/${sandbox}`)).status).toBe(204)
    await answer
    expect(await textsOf(sandbox, 'exec')).toEqual(['late: allowed'])
  })

  test('(threat T50) records a start as allowed when access is revoked before it completes', async () => {
    const bob = await ApiClient.named(control, 'starter')
    const sandbox = await make(false)
    const grant = await share(sandbox, 'collaborator', bob)
    const { promise, resolve } = Promise.withResolvers<void>()
    const before = sandboxes.starts
    sandboxes.held = promise
    const answer = bob.post(`/api/sandboxes/${sandbox}/start`, undefined)
    await eventually(() => sandboxes.starts > before, { what: 'the start' })
    expect((await owner.delete(`/api/grants/${grant}`)).status).toBe(204)
    resolve()
    expect((await answer).status).toBe(404)
    expect(await textsOf(sandbox, 'sandbox.start')).toEqual(['starter: allowed'])
  })
})

/** The outcome of an upgrade: the code of a frame, of a refusal over HTTP, or `open`. */
async function outcomeOf(handshake: RawHandshake): Promise<string> {
  if (handshake.kind !== 'open') return refusalOf(handshake)
  await using socket = handshake.socket
  const frame: unknown = JSON.parse(new TextDecoder().decode((await socket.nextFrame()).payload))
  return fieldOf(frame, 'type') === 'error' ? String(fieldOf(frame, 'code')) : 'open'
}

describe('an attach that sandboxd refuses', () => {
  test('(threat T50) is reported by code to the client, the audit, the metrics and the log', async () => {
    const eve = await ApiClient.named(control, 'eve')
    const sandbox = await make()
    const { id } = await startCat(sandbox)
    await share(sandbox, 'viewer', eve)
    const attach = async (query: string, { headers }: ApiClient = owner): Promise<string> =>
      outcomeOf(await upgrade(control, `/attach?${query}`, { headers, subprotocols: V1 }))
    const counted = (outcome: string): Promise<number> =>
      control.metric(`sandwire_attaches_total{dialect="v1",outcome="${outcome}"}`)
    const codes = ['forbidden', 'session_not_found', 'path_refused'] as const
    const before = await Promise.all(codes.map(counted))
    expect(await attach(`session=${id}&role=driver`, eve)).toBe('forbidden')
    expect(await attach(`session=${sandbox}.${'0'.repeat(26)}`)).toBe('session_not_found')
    expect(await attach(`sandbox=${sandbox}&cmd=cat&cwd=/etc`)).toBe('path_refused')
    expect(await Promise.all(codes.map(counted))).toEqual(before.map((count) => count + 1))
    const lines = control.log.filter((line) => line.includes('"event":"attach"') && line.includes(sandbox))
    for (const code of codes)
      expect(lines.filter((line) => line.includes(`"code":"${code}"`))).toHaveLength(1)
    expect(lines.filter((line) => line.includes('"code":"ok"'))).toEqual([])
    await eventually(async () => (await rowsOf(sandbox, 'session.join')).length === 2, { what: 'both rows' })
    expect(await textsOf(sandbox, 'session.join')).toEqual([
      'owner: allowed session_not_found',
      'eve: refused forbidden',
    ])
    await eventually(async () => (await rowsOf(sandbox, 'session.start')).length === 2, { what: 'both rows' })
    expect(await textsOf(sandbox, 'session.start')).toEqual(['owner: allowed path_refused', 'owner: allowed'])
  })
})

describe('a refused request whose URL does not name the sandbox', () => {
  test('(threat T50) is audited by the owner of the sandbox that its ticket is for', async () => {
    const bob = await ApiClient.named(control, 'ticket-holder')
    const sandbox = await make()
    await share(sandbox, 'collaborator', bob)
    const ticket = textIn(await bob.post('/api/tickets', { sandbox }), 'ticket')
    const subprotocols = [...V1, `sandwire.ticket.${ticket}`]
    const handshake = await upgrade(control, '/attach?cmd=reboot', { headers: [], subprotocols })
    expect(await outcomeOf(handshake)).toBe('command_blocked')
    expect(await textsOf(sandbox, 'session.start')).toEqual(['ticket-holder: refused command_blocked'])
  })

  test('(threat T50) is audited by the owner of the sandbox that its body names', async () => {
    const scopes = { scope: 'sandbox:connect sandbox:exec' }
    const bob = await ApiClient.named(control, 'wants-to-share', scopes)
    const sandbox = await make()
    await share(sandbox, 'collaborator', bob)
    expect((await bob.post('/api/grants', { sandbox, role: 'viewer' })).status).toBe(403)
    await eventually(async () => (await textsOf(sandbox, 'grant.create')).length > 1, { what: 'the refusal' })
    expect(await textsOf(sandbox, 'grant.create')).toContain('wants-to-share: refused forbidden')
  })

  test('(threat T50) is audited with the session id that its session token resolves to', async () => {
    const sandbox = await make()
    const { id, token } = await startCat(sandbox)
    const handshake = await upgrade(control, `/attach?session=${token}&cmd=reboot`, { subprotocols: V1 })
    expect(await outcomeOf(handshake)).toBe('command_blocked')
    const [row] = await rowsOf(sandbox, 'session.join')
    expect(row).toMatchObject({ outcome: 'refused', code: 'command_blocked', session: id })
  })
})
