import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { eventually } from '@sandwire/testing'
import { createLog } from '../src/log.ts'
import { decodeLateRefusals, type LateRefusal, LateRefusals } from '../src/sandbox/late-refusals.ts'
import { SandboxStore } from '../src/sandbox/store.ts'
import { sqlOf } from './support/bun-sql.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { JWT_SECRET, linkIn, ApiClient, textIn, UNLIMITED } from './support/api-client.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'
import { fieldOf } from './support/json.ts'

describe('late refusals reported by a sandbox', () => {
  test('are refusals and processes that did not start', () => {
    const refused = [
      { requestId: 'a', code: 'forbidden' },
      { requestId: 'b', code: 'too_many_attachments' },
      { requestId: 'c', code: 'command_not_found' },
      { requestId: 'd', code: 'replaced' },
      { requestId: 'e', code: 'no such code' },
      { requestId: 'f'.repeat(200), code: 'forbidden' },
      'nonsense',
    ]
    expect(decodeLateRefusals({ refused }).map(({ requestId }) => requestId)).toEqual(['a', 'b', 'c'])
  })

  test('are ignored when malformed or too many', () => {
    const many = Array.from({ length: 257 }, (_, index) => ({ requestId: `r${index}`, code: 'forbidden' }))
    for (const answer of [null, {}, { refused: 1 }, { refused: many }])
      expect(decodeLateRefusals(answer)).toEqual([])
  })

  test('are reported once, and again after a failure', async () => {
    const store = new SandboxStore(sqlOf(new Database(':memory:')))
    const settings = {
      network: { policy: 'none', allow: [] },
      limits: DEFAULT_SANDBOX_LIMITS,
      env: {},
    } as const
    const state = { kind: 'stopped' } as const
    store.insert({ id: 's1', owner: 'ada', name: 'dev', createdMs: 0, lastActivityMs: 0, settings, state })
    const reported: (readonly LateRefusal[])[] = []
    let isAway = true
    const refusals = new LateRefusals({
      store,
      report: async (owner, sandbox, list) => {
        if (isAway) throw new Error('away')
        expect([owner, sandbox]).toEqual(['ada', 's1'])
        reported.push(list)
      },
      log: createLog(
        () => undefined,
        () => 0,
      ),
    })
    const [one, two] = ['a', 'b'].map((requestId) => ({ requestId, code: 'forbidden' as const }))
    await refusals.receive({ refused: [one] })
    isAway = false
    await refusals.receive({ refused: [one] })
    await refusals.receive({ refused: [one] })
    await refusals.receive({ refused: [one, two] })
    expect(reported).toMatchObject([[one], [two]])
  })
})

describe('with the real sandboxd', () => {
  let sandboxes: RealSandboxes
  let control: RunningControl
  let owner: ApiClient
  beforeAll(async () => {
    sandboxes = new RealSandboxes()
    control = await startControl({
      runner: sandboxes,
      config: { limits: UNLIMITED, alarmMs: 200 },
      bindings: { JWT_SECRET },
    })
    owner = new ApiClient(control, TOKEN)
    await owner.post('/api/sandboxes', { name: 'dev' })
  })
  afterAll(async () => {
    await control[Symbol.asyncDispose]()
    await sandboxes[Symbol.asyncDispose]()
  })

  async function rowsOf(action: string): Promise<readonly unknown[]> {
    const { body } = await owner.get(`/api/audit?action=${action}`)
    return fieldOf(body, 'rows') as unknown[]
  }

  test('a role in hello beyond the grant is audited as refused', async () => {
    const started = await owner.post('/api/sandboxes/dev/sessions', { cmd: 'cat', keep: 600 })
    const session = textIn(started, 'id')
    const bob = await ApiClient.named(control, 'bob')
    const grant = await owner.post('/api/grants', { role: 'viewer', session })
    await bob.post('/api/grants/redeem', { link: linkIn(grant) })
    const handshake = await upgrade(control, `/attach?session=${session}`, {
      subprotocols: ['sandwire.v1'],
      headers: bob.headers,
    })
    if (handshake.kind !== 'open') throw new Error(`Expected a socket: ${refusalOf(handshake)}`)
    await using socket = handshake.socket
    const hello = {
      type: 'hello',
      version: 1,
      identity: 'b'.repeat(32),
      resuming: false,
      received: 0,
      window: 65536,
      cols: 80,
      rows: 24,
      role: 'driver',
    }
    await socket.sendFrame({ opcode: 1, payload: new TextEncoder().encode(JSON.stringify(hello)) })
    expect((await socket.closed).frame?.reason).toBe('forbidden')
    const rows = await eventually(
      async () => {
        const found = await rowsOf('session.join')
        return found.length === 2 ? found : undefined
      },
      { what: 'the second row' },
    )
    const about = { actorName: 'bob', session }
    expect(rows).toMatchObject([
      { ...about, outcome: 'refused', code: 'forbidden' },
      { ...about, outcome: 'allowed', code: null },
    ])
  })

  test('a command that does not exist is audited with the reason', async () => {
    const handshake = await upgrade(control, '/attach?sandbox=dev&cmd=no-such-command', {
      headers: owner.headers,
    })
    if (handshake.kind !== 'open') throw new Error(`Expected a socket: ${refusalOf(handshake)}`)
    await using socket = handshake.socket
    await socket.closed
    await eventually(
      async () => JSON.stringify(await rowsOf('session.start')).includes('"code":"command_not_found"'),
      { what: 'the row' },
    )
  })
})
