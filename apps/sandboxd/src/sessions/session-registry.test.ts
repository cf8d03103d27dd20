import { DEFAULT_LIMITS, encode, SandwireError } from '@sandwire/protocol'
import { expect, test } from 'bun:test'
import { BEARER } from '../caller.ts'
import { createLog } from '../log.ts'
import type { ProcessEvents, RunningProcess, SpawnFailure } from '../processes/process.ts'
import type { Settings } from '../settings.ts'
import { SessionRegistry } from './session-registry.ts'
import type { SessionConnection } from './connections.ts'
import type { SessionRunner } from './session-runner.ts'

const SETTINGS: Settings = {
  version: '0',
  workspace: '/',
  baseEnv: {},
  shell: ['sh'],
  credential: { kind: 'none' },
  origins: [],
  hosts: [],
  maxSessions: 3,
  maxLifetimeSeconds: 0,
  maxIdleSeconds: 0,
  requestsPerSecond: 1,
  maxMessageBytes: 1,
  session: DEFAULT_LIMITS,
}

const START = { env: {}, cols: 80, rows: 24 }
const CREATE = {
  argv: ['true'],
  pane: undefined,
  mode: 'pipe',
  cwd: undefined,
  keepSeconds: 60,
  lifetimeSeconds: undefined,
  idleSeconds: undefined,
  overflow: 'block',
  isPinned: false,
} as const

/** A registry whose processes exit when told to. */
function setUp({ canStart = true } = {}) {
  const processes: ProcessEvents[] = []
  const terminated: ProcessEvents[] = []
  let minted = 0
  const registry = new SessionRegistry(
    SETTINGS,
    {
      startProcess: (_, events): RunningProcess | SpawnFailure => {
        if (!canStart) return { failure: 'not_found', message: 'no such command' }
        processes.push(events)
        const ignore = (): void => {}
        return {
          pid: 1,
          write: ignore,
          closeInput: ignore,
          resize: ignore,
          signal: ignore,
          pause: ignore,
          resume: ignore,
          terminate: async () => void terminated.push(events),
        }
      },
      createScreen: () => {
        throw new Error('no terminal here')
      },
      asUser: (action) => action(),
      temporaryFolder: '/nonexistent',
      panes: {
        view: async () => undefined,
        sizeOf: () => undefined,
        typeInto: async () => false,
        startPane: () => () => ({ failure: 'not_found', message: 'no panes here' }),
      },
      log: createLog(
        () => {},
        () => new Date(),
      ),
      now: () => performance.now(),
    },
    { mintId: () => `s${(minted += 1)}`, wallClock: Date.now },
  )
  const create = (): SessionRunner => {
    const { runner } = registry.create({
      caller: BEARER,
      requestId: 'r',
      createId: undefined,
      create: CREATE,
    })
    runner.start(START)
    return runner
  }
  const exit = (index: number): void => processes[index]?.ended({ code: 0, signal: null, truncated: false })
  return { registry, create, exit, terminated }
}

function attach(runner: SessionRunner): void {
  const connection: SessionConnection = {
    requestId: 'r',
    send: () => 'sent',
    sendOutput: () => 'sent',
    close: () => {},
    terminate: () => {},
    inputSettled: () => {},
  }
  runner.connected(
    1,
    connection,
    { principal: 'ada', authority: 'driver', dialect: 'v1', take: false },
    START,
  )
  runner.received(
    1,
    encode({
      type: 'hello',
      version: 1,
      identity: '0'.repeat(32),
      resuming: false,
      received: 0,
      window: 1_000,
      cols: 80,
      rows: 24,
    }),
  )
}

const codeOf = (action: () => unknown): string | undefined => {
  try {
    action()
    return undefined
  } catch (error) {
    return SandwireError.from(error).code
  }
}

test('[C8] sessions whose process has exited do not keep new ones from starting', () => {
  const { registry, create, exit, terminated } = setUp()
  const ids = Array.from({ length: 20 }, (_, index) => {
    const { session } = create()
    exit(index)
    return session.id
  })
  expect(registry.size).toBe(3)
  // The newest are kept.
  expect(ids.map((id) => codeOf(() => registry.find(id)))).toEqual([
    ...Array.from({ length: 17 }, () => 'session_gone'),
    undefined,
    undefined,
    undefined,
  ])
  // What a process left running on purpose is not ended.
  expect(terminated).toEqual([])
})

test('[C8] running sessions and those with a connection are not replaced', () => {
  const { registry, create, exit } = setUp()
  const attached = create()
  attach(attached)
  exit(0)
  create()
  const exited = create()
  exit(2)
  const latest = create()
  expect(codeOf(() => registry.find(exited.session.id))).toBe('session_gone')
  expect(codeOf(create)).toBe('too_many_sessions')
  for (const { session } of [attached, latest]) expect(registry.find(session.id).session).toBe(session)
})

test('[C8] sessions whose process could not be started do not keep new ones from starting', () => {
  const { registry, create } = setUp({ canStart: false })
  for (let left = 10; left > 0; left -= 1) create()
  expect(registry.size).toBe(3)
})

test('[C1] a create that was refused can be repeated with its create id', () => {
  const { registry, create, exit } = setUp()
  const request = { caller: BEARER, requestId: 'r', createId: 'c', create: CREATE }
  for (let left = 3; left > 0; left -= 1) create()
  expect(codeOf(() => registry.create(request))).toBe('too_many_sessions')
  exit(0)
  const { runner, isNew } = registry.create(request)
  expect(isNew).toBe(true)
  expect(registry.create(request)).toEqual({ runner, isNew: false })
})
