import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { NO_CEILING_SETTINGS } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import { eventually, rejectionOf } from '@sandwire/testing'
import { resolveCeilings } from '../src/ceilings/ceilings.ts'
import { createLog } from '../src/log.ts'
import { SCOPES } from '../src/auth/identity.ts'
import { SandboxLifecycle } from '../src/sandbox/lifecycle.ts'
import type { SandboxSettings, SandboxView } from '../src/sandbox/record.ts'
import { SandboxdClient } from '../src/sandbox/sandboxd-client.ts'
import type { SessionFacts } from '../src/sandbox/session-view.ts'
import { OutputBudget } from '../src/sandbox/output-budget.ts'
import { SandboxSessions } from '../src/sandbox/sessions.ts'
import type { Destroyer } from '../src/sandbox/state.ts'
import { SandboxStore } from '../src/sandbox/store.ts'
import { sqlOf } from './support/bun-sql.ts'
import { MemoryProvider } from './support/memory-provider.ts'
import { NO_VERSIONS } from './support/no-versions.ts'

const ID = '0'.repeat(32)
const SESSION = `${ID}.${'1'.repeat(26)}`
const CALL = { identity: 'local', name: 'owner', scopes: SCOPES, address: '', requestId: 'r' }
const STRANGER = { ...CALL, identity: 'eve' }
const SETTINGS: SandboxSettings = {
  network: { policy: 'none', allow: [] },
  limits: DEFAULT_SANDBOX_LIMITS,
  env: {},
}

function session(changes: Partial<SessionFacts> = {}): SessionFacts {
  return {
    id: SESSION,
    state: 'running',
    mode: 'pipe',
    cmd: 'cat',
    attachments: 0,
    people: [],
    createdMs: null,
    lastInputMs: null,
    lastOutputMs: null,
    keepSeconds: 60,
    output: { start: 0, end: 0 },
    pinned: false,
    exit: null,
    ...changes,
  }
}

function open(
  provider = new MemoryProvider(),
  settings = SETTINGS,
  timeouts = { lifetimeSeconds: 0, idleSeconds: 0 },
) {
  const database = new Database(':memory:')
  const store = new SandboxStore(sqlOf(database))
  const tables = (): unknown[] =>
    database.query("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").all()
  const reports: { view: SandboxView; sessions: readonly SessionFacts[] | undefined }[] = []
  const removed: string[] = []
  const destroyers: Destroyer[] = []
  const clock = { nowMs: 1_000 }
  let alarmMs: number | undefined
  let activity: readonly SessionFacts[] = []
  let version = { protocol: 1, compatible_from: 1 }
  const requested: string[] = []
  provider.answer = ({ path }) => {
    requested.push(path)
    if (path === '/__meta/version') return Response.json(version)
    return Response.json({ attachments: 0, sessions: activity, exits: [] })
  }
  const sandboxd = (sandbox: string) =>
    new SandboxdClient({
      sandbox,
      provider,
      signer: { publicKey: 'k', sign: async () => 'token' },
      nowMs: () => clock.nowMs,
    })
  const lifecycle = new SandboxLifecycle({
    store,
    provider,
    files: NO_VERSIONS,
    sandboxd,
    publicKey: 'k',
    refusals: { receive: async () => undefined },
    sandboxdMetrics: { receive: () => undefined },
    settings: {
      alarmMs: 30_000,
      limits: { sessionsPerSandbox: 7, outputBytesPerSecond: 9_000 },
    },
    ceilings: resolveCeilings(NO_CEILING_SETTINGS, {
      isShared: false,
      filesSurviveStop: true,
      maxSandboxes: 100,
      idleSeconds: 600,
    }),
    nowMs: () => clock.nowMs,
    log: createLog(
      () => undefined,
      () => 0,
    ),
    index: {
      report: async (_, view, sessions) => void reports.push({ view, sessions }),
      reserve: async (_, view) => void reports.push({ view, sessions: [] }),
      admitSession: async () => undefined,
      remove: async (_, sandbox) => void removed.push(sandbox),
      has: async (owner) => owner === CALL.identity,
    },
    alarm: { set: async (atMs) => void (alarmMs = atMs), clear: async () => void (alarmMs = undefined) },
    onDestroyed: async (by) => void destroyers.push(by),
    keepLog: async () => undefined,
    deleteSegments: async () => undefined,
    deleteAll: async () => {
      for (const table of [
        'container',
        'container_log',
        'sandbox',
        'pins',
        'rechecked_connections',
        'session_aliases',
        'grants',
        'tickets',
        'outbox',
        'dead_letters',
        'held_versions',
        'workspace_restores',
        'partial_restore',
        'dropped_audit_rows',
        'ended_logins',
        'segments',
        'versions',
        'forks',
        'retention',
        'destroyed',
        'pending_restore',
        'last_start',
        'schema_version',
      ])
        database.run(`DROP TABLE ${table}`)
      store.reset()
    },
  })
  return {
    lifecycle,
    store,
    provider,
    clock,
    reports,
    removed,
    destroyers,
    requested,
    tables,
    sessions: new SandboxSessions({
      lifecycle,
      store,
      sandboxd,
      budget: new OutputBudget(0),
      timeouts,
      nowMs: () => clock.nowMs,
      sleep: async () => undefined,
    }),
    alarm: () => alarmMs,
    state: () => store.read()?.state.kind,
    say: (sessions: readonly SessionFacts[]) => void (activity = sessions),
    speak: (protocol: number, compatible_from: number) => void (version = { protocol, compatible_from }),
    create: () => lifecycle.create({ id: ID, owner: 'local', name: 'dev', settings }),
  }
}

describe('the lifecycle of a sandbox', () => {
  test('is created stopped, once', async () => {
    const made = open()
    expect(await made.create()).toMatchObject({ state: 'stopped', ephemeral: false, sleepAfterSeconds: 600 })
    made.clock.nowMs = 2_000
    expect((await made.create()).createdMs).toBe(1_000)
  })

  test('(threat T4) belongs to its owner', async () => {
    const made = open()
    await made.create()
    expect(() => made.lifecycle.authorize(STRANGER, 'watch')).toThrow('No sandbox has this id or name')
    expect(await rejectionOf(made.lifecycle.destroy(STRANGER, ID))).toMatchObject({
      code: 'sandbox_not_found',
    })
    expect(made.removed).toEqual([])
  })

  test('starts a sandbox again that only seems to run', async () => {
    const made = open()
    await made.create()
    await made.lifecycle.start('r')
    made.provider.sandboxes.set(ID, { id: ID, state: 'stopped', reason: 'supervisor_lost' })
    await made.lifecycle.startObserved('r')
    expect([made.provider.starts, made.state()]).toEqual([2, 'running'])
    expect(made.provider.sandboxes.get(ID)?.state).toBe('running')
  })

  test('finds out what became of a start that was not answered', async () => {
    const made = open()
    await made.create()
    made.provider.failure = new SandwireError('provider_unavailable', 'The host died')
    await rejectionOf(made.lifecycle.start('r'))
    expect([made.state(), made.alarm()]).toEqual(['failed', 31_000])
    // The supervisor went on.
    const status = { id: ID, address: 'slot:1', epoch: 'e9', startedMs: 1 } as const
    made.provider.sandboxes.set(ID, { id: ID, state: 'starting' })
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('creating')
    made.provider.sandboxes.set(ID, { ...status, state: 'running' })
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('running')
    // It is stopped when idle, like any other.
    made.clock.nowMs += 600_000
    await made.lifecycle.poll('r')
    expect([made.state(), made.provider.reasons]).toEqual(['stopped', ['idle']])
  })

  test('is shown as the provider reports it, at most seconds old', async () => {
    const made = open()
    await made.create()
    await made.lifecycle.start('r')
    made.provider.sandboxes.set(ID, { id: ID, state: 'stopped', reason: 'oom' })
    made.clock.nowMs += 2_000
    await made.lifecycle.refresh('r')
    expect(made.state()).toBe('stopped')
    const running = { id: ID, state: 'running', address: 'slot:1', epoch: 'e9', startedMs: 1 } as const
    made.provider.sandboxes.set(ID, running)
    await made.lifecycle.refresh('r')
    expect(made.state()).toBe('stopped')
    made.clock.nowMs += 2_000
    await made.lifecycle.refresh('r')
    expect(made.state()).toBe('running')
  })

  test('removes a plain connection whose session ended, but none that was opened during the poll', async () => {
    const made = open()
    await made.create()
    await made.lifecycle.start('r')
    const stay = { need: 'work' as const, identity: 'local', login: 'l1', hasStoredSignIn: false }
    made.store.recheckedConnections.add({ ...stay, session: SESSION }, 0)
    made.store.recheckedConnections.add({ ...stay, session: 'over' }, 0)
    made.say([session()])
    const { answer } = made.provider
    made.provider.answer = (request) => {
      made.store.recheckedConnections.add({ ...stay, session: 'new' }, 0)
      return answer(request)
    }
    await made.lifecycle.poll('r')
    expect(made.store.recheckedConnections.all().map((each) => each.session)).toEqual([SESSION, 'new'])
  })

  test('starts once for concurrent requests', async () => {
    const made = open()
    await made.create()
    await Promise.all(Array.from({ length: 20 }, () => made.lifecycle.start('r')))
    expect(made.provider.starts).toBe(1)
    expect(made.state()).toBe('running')
    expect(made.alarm()).toBe(31_000)
    expect(made.reports.map(({ view }) => view.state)).toEqual(['stopped', 'creating', 'running'])
  })

  test('reports why a start failed, and starts at the next request', async () => {
    const made = open()
    await made.create()
    made.provider.failure = new SandwireError('sandbox_failed', 'no')
    expect(await rejectionOf(made.lifecycle.start('r'))).toMatchObject({ code: 'sandbox_failed' })
    expect(made.reports.at(-1)?.view).toMatchObject({ state: 'failed', reason: 'sandbox_failed' })
    expect(made.alarm()).toBeUndefined()
    await made.lifecycle.start('r')
    expect(made.state()).toBe('running')
  })

  test('starts again after a stop that was requested first', async () => {
    const made = open()
    await made.create()
    await made.lifecycle.start('r')
    await Promise.all([
      made.lifecycle.stop('r', false),
      Promise.resolve().then(() => made.lifecycle.start('r')),
    ])
    expect(made.state()).toBe('running')
    expect(made.provider.stops).toBe(1)
  })

  test('is not reported as running while it is stopping', async () => {
    const made = open()
    await made.create()
    await made.lifecycle.start('r')
    const stopped = made.lifecycle.stop('r', false)
    const observed = made.lifecycle.observe('r')
    await stopped
    expect((await observed).kind).toBe('stopped')
    expect(made.reports.map(({ view }) => view.state).slice(-2)).toEqual(['stopping', 'stopped'])
  })

  test('is not started by a request for a session', async () => {
    const made = open()
    await made.create()
    expect(await rejectionOf(made.lifecycle.ready('r', false))).toMatchObject({ code: 'sandbox_stopped' })
    expect(made.provider.starts).toBe(0)
  })

  test('is found running although it was recorded as stopped', async () => {
    const made = open()
    await made.create()
    await made.lifecycle.start('r')
    made.store.setState({ kind: 'stopped' })
    expect((await made.lifecycle.ready('r', false)).kind).toBe('running')
    expect(made.provider.starts).toBe(1)
  })

  test('lets only the owner continue an interrupted deletion', async () => {
    const made = open()
    expect(await rejectionOf(made.lifecycle.authorizeDestroy(STRANGER, ID))).toMatchObject({
      code: 'sandbox_not_found',
    })
    await made.lifecycle.authorizeDestroy(CALL, ID)
  })

  test('leaves no data behind when deleted', async () => {
    const made = open()
    await made.create()
    await made.lifecycle.start('r')
    await made.lifecycle.destroy(CALL, ID)
    expect(made.removed).toEqual([ID])
    expect(made.alarm()).toBeUndefined()
    expect(made.provider.sandboxes.size).toBe(0)
    made.store.touch(5)
    expect(() => made.lifecycle.authorize(CALL, 'watch')).toThrow('No sandbox')
    await made.lifecycle.poll('r')
    expect(made.tables()).toEqual([])
    await made.create()
    expect(made.state()).toBe('stopped')
  })

  test('stops only on request where files do not survive a stop', async () => {
    const made = open(new MemoryProvider('nothing'))
    expect(await made.create()).toMatchObject({ ephemeral: true, sleepAfterSeconds: null })
    await made.lifecycle.start('r')
    expect(await rejectionOf(made.lifecycle.stop('r', false))).toMatchObject({ code: 'needs_discard' })
    made.clock.nowMs += 10_000_000
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('running')
    await made.lifecycle.stop('r', true)
    expect(made.state()).toBe('stopped')
  })
})

describe('the alarm', () => {
  test('renews a running sandbox at three polls, and not a stopped one', async () => {
    const made = open()
    await made.create()
    await made.lifecycle.start('r')
    await made.lifecycle.poll('r')
    expect(made.provider.renewals).toEqual([90_000, 90_000])
    made.clock.nowMs += 700_000
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('stopped')
    expect(made.provider.renewals).toHaveLength(2)
  })

  async function running(settings = SETTINGS) {
    const made = open(new MemoryProvider(), settings)
    await made.create()
    await made.lifecycle.start('r')
    return made
  }

  test('stops an idle sandbox, attached or not', async () => {
    const made = await running()
    made.say([session({ attachments: 1 })])
    made.clock.nowMs += 599_999
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('running')
    expect(made.alarm()).toBe(made.clock.nowMs + 30_000)
    made.clock.nowMs += 1
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('stopped')
    expect(made.provider.reasons).toEqual(['idle'])
    expect(made.alarm()).toBeUndefined()
    expect(made.reports.at(-1)?.sessions).toEqual([])
  })

  test('[X13] gives sandboxd the stop reason where the provider does not, and stops without its answer', async () => {
    const made = await running()
    const bodies: unknown[] = []
    const { answer } = made.provider
    made.provider.deliversStopReason = false
    made.provider.answer = (request) => {
      if (request.path !== '/stop-reason') return answer(request)
      bodies.push(request.method, request.body)
      return new Response('garbage', { status: 500 })
    }
    await made.lifecycle.stop('r', true)
    expect(made.state()).toBe('stopped')
    expect(bodies).toEqual(['PUT', '{"reason":"requested"}'])
  })

  test.each(['lastInputMs', 'lastOutputMs'] as const)('detects activity: %s', async (when) => {
    const made = await running()
    made.clock.nowMs += 600_000
    made.say([session({ [when]: made.clock.nowMs - 1 })])
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('running')
    expect(made.reports.at(-1)?.sessions).toHaveLength(1)
  })

  test('does not stop a sandbox while a pinned session runs', async () => {
    const made = await running()
    made.store.setPin(SESSION, true)
    made.say([session()])
    made.clock.nowMs += 600_000
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('running')
    expect(made.reports.at(-1)?.sessions).toMatchObject([{ id: SESSION, pinned: true }])
    made.say([session({ state: 'exited', exit: { code: 0, signal: null, truncated: false } })])
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('stopped')
  })

  test('does not stop a sandbox whose session was pinned at its start until it is unpinned', async () => {
    const made = await running()
    made.say([session({ pinned: true })])
    made.clock.nowMs += 600_000
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('running')
    made.store.setPin(SESSION, false)
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('stopped')
  })

  test('does not stop a sandbox without an idle time', async () => {
    const made = await running({ ...SETTINGS, sleepAfterMs: null })
    made.clock.nowMs += 10_000_000
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('running')
  })

  test('detects a sandbox that ended by itself', async () => {
    const made = await running()
    made.provider.sandboxes.set(ID, { id: ID, state: 'stopped', reason: 'oom' })
    await made.lifecycle.poll('r')
    expect(made.reports.at(-1)?.view).toMatchObject({ state: 'stopped', reason: 'oom' })
    expect(made.alarm()).toBeUndefined()
  })

  test('completes an interrupted start or stop', async () => {
    for (const kind of ['creating', 'stopping'] as const) {
      const made = await running()
      made.store.setState({ kind })
      await made.lifecycle.poll('r')
      expect(made.state()).toBe('running')
      made.store.setState({ kind })
      made.provider.sandboxes.clear()
      await made.lifecycle.poll('r')
      expect(made.state()).toBe('stopped')
      expect(made.alarm()).toBeUndefined()
    }
  })

  test('does not interfere with a start in progress', async () => {
    const made = open()
    await made.create()
    const gate = Promise.withResolvers<void>()
    made.provider.gate = gate.promise
    const started = made.lifecycle.start('r')
    await eventually(() => made.alarm() === 31_000, { what: 'the alarm to be set' })
    await made.lifecycle.poll('r')
    expect(made.state()).toBe('creating')
    gate.resolve()
    await started
    expect(made.state()).toBe('running')
  })

  test('ends when the sandbox is destroyed during a poll', async () => {
    const made = await running()
    const { answer } = made.provider
    const destroyed = Promise.withResolvers<void>()
    made.provider.answer = (request) => {
      made.lifecycle.destroy(CALL, ID).then(destroyed.resolve, destroyed.reject)
      return answer(request)
    }
    await made.lifecycle.poll('r')
    await destroyed.promise
    expect(made.removed).toEqual([ID])
    expect(made.alarm()).toBeUndefined()
  })

  test('is set again when the sandbox does not respond', async () => {
    const made = await running()
    made.provider.answer = () => new Response('garbage', { status: 500 })
    made.clock.nowMs += 5
    await made.lifecycle.poll('r')
    expect(made.alarm()).toBe(made.clock.nowMs + 30_000)
  })
})

test('tells the provider that a sandbox has files once it ran', async () => {
  const made = open()
  await made.create()
  const { provider } = made
  const start = provider.start.bind(provider)
  const told: unknown[] = []
  provider.start = (spec) => {
    told.push(spec.hasFiles)
    return start(spec)
  }
  provider.failure = new SandwireError('sandbox_failed', 'It failed')
  await rejectionOf(made.lifecycle.start('r'))
  provider.failure = undefined
  await made.lifecycle.start('r')
  await made.lifecycle.stop('r', false)
  await made.lifecycle.start('r')
  expect(told).toEqual([false, false, true])
})

describe('a destroy that the provider does not answer', () => {
  async function interrupted() {
    const made = open()
    await made.create()
    await made.lifecycle.start('r')
    const { provider } = made
    const destroy = provider.destroy.bind(provider)
    provider.destroy = async () => {
      throw new SandwireError('provider_unavailable', 'The host does not respond')
    }
    const failure = await rejectionOf(made.lifecycle.destroy(CALL, ID))
    expect(failure).toMatchObject({ code: 'provider_unavailable' })
    return { ...made, recover: () => void (provider.destroy = destroy) }
  }

  test('leaves a sandbox that is seen as being destroyed, and never starts', async () => {
    const made = await interrupted()
    expect(made.reports.at(-1)?.view.state).toBe('destroying')
    expect(made.lifecycle.show(made.lifecycle.authorize(CALL, 'see')).state).toBe('destroying')
    const refused = { code: 'sandbox_destroying' }
    expect(await rejectionOf(made.lifecycle.start('r'))).toMatchObject(refused)
    expect(await rejectionOf(made.lifecycle.ready('r', false))).toMatchObject(refused)
    expect(await rejectionOf(made.create())).toMatchObject(refused)
    for (const need of ['watch', 'work'] as const)
      expect(() => made.lifecycle.authorize(CALL, need)).toThrow('is being destroyed')
    expect(() => made.lifecycle.authorize(STRANGER, 'work')).toThrow('No sandbox')
    // What the provider reports, or a start that was in progress, does not revive it.
    await made.lifecycle.observe('r')
    await made.lifecycle.stop('r', true)
    expect(made.state()).toBe('destroying')
  })

  test('is finished by the alarm', async () => {
    const made = await interrupted()
    expect(made.alarm()).toBe(made.clock.nowMs + 5_000)
    made.clock.nowMs += 5_000
    await made.lifecycle.poll('r')
    expect([made.state(), made.alarm()]).toEqual(['destroying', made.clock.nowMs + 5_000])
    made.recover()
    await made.lifecycle.poll('r')
    expect(made.removed).toEqual([ID])
    expect(made.destroyers).toEqual([{ identity: 'local', name: 'owner', address: '' }])
    expect([made.tables(), made.alarm()]).toEqual([[], undefined])
    expect(await rejectionOf(made.lifecycle.start('r'))).toMatchObject({ code: 'sandbox_not_found' })
  })

  test('can be repeated', async () => {
    const made = await interrupted()
    made.recover()
    await Promise.all([made.lifecycle.destroy(CALL, ID), made.lifecycle.destroy(CALL, ID)])
    expect(made.removed).toEqual([ID])
  })

  test('wins over a start in progress', async () => {
    const made = open()
    await made.create()
    const { promise, resolve } = Promise.withResolvers<void>()
    made.provider.gate = promise
    const starting = rejectionOf(made.lifecycle.ready('r', true))
    await eventually(() => made.state() === 'creating', { what: 'the start' })
    const destroyed = made.lifecycle.destroy(CALL, ID)
    resolve()
    await destroyed
    expect(await starting).toMatchObject({ code: expect.stringMatching(/^sandbox_(destroying|not_found)$/) })
    expect(made.provider.sandboxes.size).toBe(0)
  })
})

describe('a call to sandboxd', () => {
  const start = { need: 'work', mayStart: true, isIdempotent: false } as const
  const join = { need: 'work', mayStart: false, isIdempotent: true } as const

  test('requests the version once per start', async () => {
    const made = open()
    await made.create()
    for (let count = 0; count < 3; count++) await made.sessions.reach(CALL, start, async () => 'in')
    expect(made.requested).toEqual(['/__meta/version'])
    await made.lifecycle.stop('r', false)
    await made.sessions.reach(CALL, start, async () => 'in')
    expect(made.requested).toHaveLength(2)
  })

  test('refuses a sandboxd that is too old or too new', async () => {
    const made = open()
    await made.create()
    made.speak(0, 0)
    expect(String(await rejectionOf(made.sessions.reach(CALL, start, async () => 'in')))).toMatch(
      'sandboxd is old',
    )
    made.speak(9, 9)
    expect(String(await rejectionOf(made.sessions.reach(CALL, start, async () => 'in')))).toMatch(
      'server is old',
    )
    made.speak(2, 1)
    expect(await made.sessions.reach(CALL, start, async () => 'in')).toBe('in')
  })

  test('finds a sandbox that moved', async () => {
    const made = open()
    await made.create()
    await made.sessions.reach(CALL, start, async () => 'in')
    // Restarted without our knowledge: another address and epoch.
    await made.provider.stop(ID, 'r')
    await made.provider.start({ id: ID, name: 'dev', publicKey: 'k', ...SETTINGS })
    const found = await made.sessions.reach(CALL, start, async ({ address }, client) =>
      client.request(
        address,
        { ...CALL, authority: 'driver', exec: true },
        { method: 'GET', path: '/activity' },
      ),
    )
    expect(found).toBeDefined()
  })

  test('restarts a sandbox that ended for a start, never for a join', async () => {
    const made = open()
    await made.create()
    await made.sessions.reach(CALL, start, async () => 'in')
    const ask = { method: 'GET', path: '/activity' } as const
    const caller = { ...CALL, authority: 'driver', exec: true } as const
    made.provider.sandboxes.set(ID, { id: ID, state: 'stopped', reason: 'oom' })
    expect(
      await rejectionOf(
        made.sessions.reach(CALL, join, ({ address }, client) => client.request(address, caller, ask)),
      ),
    ).toMatchObject({ code: 'sandbox_stopped' })
    expect(made.provider.starts).toBe(1)
    await made.sessions.reach(CALL, start, ({ address }, client) => client.request(address, caller, ask))
    expect(made.provider.starts).toBe(2)
  })

  test('does not repeat a request that may have started a process', async () => {
    const made = open()
    await made.create()
    let runs = 0
    const broken = async (): Promise<never> => {
      runs += 1
      throw new SandwireError('sandbox_unreachable', 'cut')
    }
    expect(await rejectionOf(made.sessions.reach(CALL, start, broken))).toMatchObject({
      code: 'sandbox_unreachable',
    })
    expect(runs).toBe(1)
    await rejectionOf(made.sessions.reach(CALL, { ...start, isIdempotent: true }, broken))
    expect(runs).toBe(3)
  })
})

test("a process that is started without attaching has the operator's timeouts", async () => {
  const made = open(new MemoryProvider(), SETTINGS, { lifetimeSeconds: 100, idleSeconds: 10 })
  await made.create()
  const bodies: unknown[] = []
  const { answer } = made.provider
  made.provider.answer = (request) => {
    if (request.path !== '/sessions') return answer(request)
    bodies.push(typeof request.body === 'string' ? JSON.parse(request.body) : undefined)
    return Response.json(session({}))
  }
  const request = { createId: '0'.repeat(32), cmd: 'true', lifetime: 500, idle: 5 }
  await made.sessions.startProcess(CALL, session({}).id, request)
  expect(bodies).toEqual([{ ...request, lifetime: 100, idle: 5 }])
})
