import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { type Amounts, type CeilingSettings, NO_CEILING_SETTINGS } from '@sandwire/operator-settings'
import { rejectionOf } from '@sandwire/testing'
import { AccountStore } from '../../src/account/store.ts'
import { StoredBytes } from '../../src/account/stored-bytes.ts'
import { AccountUsage } from '../../src/account/usage.ts'
import {
  type CeilingFacts,
  type Ceilings,
  resolveCeilings,
  settingsWithin,
} from '../../src/ceilings/ceilings.ts'
import { ceilingError, checkCeilings } from '../../src/ceilings/check-ceilings.ts'
import { MachineStore, RUNNING_EXPIRES_MS } from '../../src/machine/store.ts'
import type { SandboxView } from '../../src/sandbox/record.ts'
import { sqlOf } from '../support/bun-sql.ts'

const GiB = 1024 ** 3
const MACHINE = {
  memoryBytes: 16 * GiB,
  milliCpus: 4_000,
  pids: 32_768,
  diskBytes: 200 * GiB,
  diskOvercommit: 2,
  storeBytes: 80 * GiB,
}
const FACTS: CeilingFacts = {
  machine: MACHINE,
  isShared: true,
  filesSurviveStop: true,
  maxSandboxes: 100,
  idleSeconds: 600,
}

function resolve(settings: Partial<CeilingSettings> = {}, facts: Partial<CeilingFacts> = {}): Ceilings {
  return resolveCeilings({ ...NO_CEILING_SETTINGS, ...settings }, { ...FACTS, ...facts })
}

describe('resolveCeilings', () => {
  test('derives safe ceilings where several accounts use the machine', () => {
    expect(resolve()).toEqual({
      sandbox: {
        memoryBytes: 8 * GiB,
        milliCpus: 4_000,
        pids: 4_096,
        diskBytes: 50 * GiB,
        networks: ['none', 'allowlist'],
        idleSeconds: 86_400,
      },
      account: {
        sandboxes: 100,
        sessions: 2_000,
        memoryBytes: 8 * GiB,
        diskBytes: 100 * GiB,
        storedBytes: 20 * GiB,
      },
      machine: {
        running: 128,
        memoryBytes: 32 * GiB,
        milliCpus: 64_000,
        pids: 24_576,
        diskBytes: 400 * GiB,
      },
      isShared: true,
      defaults: { limits: DEFAULT_SANDBOX_LIMITS, network: 'none', idleSeconds: 600 },
    })
  })

  test('gives the machine to an owner who is alone', () => {
    const { sandbox, account, machine } = resolve({}, { isShared: false })
    const { diskOvercommit: _, storeBytes: _store, ...all } = MACHINE
    expect(sandbox).toEqual({ ...all, networks: ['none', 'allowlist', 'open'], idleSeconds: null })
    expect(account).toEqual({ sandboxes: 100, sessions: null })
    expect(machine).toEqual({
      running: 128,
      memoryBytes: null,
      milliCpus: null,
      pids: null,
      diskBytes: null,
    })
  })

  test('prefers what the operator sets', () => {
    const ceilings = resolve({
      sandbox: { memoryBytes: GiB / 2, networks: ['open'], idleSeconds: null },
      account: { sandboxes: 3, sessions: null },
      machine: { pids: null, memoryBytes: 5 * GiB },
      overcommit: { memory: 9 },
      defaults: { pids: 9_000, idleSeconds: 60 },
    })
    expect(ceilings.sandbox).toMatchObject({ memoryBytes: GiB / 2, networks: ['open'], idleSeconds: null })
    expect(ceilings.account).toMatchObject({ sandboxes: 3, sessions: null })
    expect(ceilings.machine).toMatchObject({ pids: null, memoryBytes: 5 * GiB, diskBytes: 400 * GiB })
    // Defaults are never above the ceilings.
    expect(ceilings.defaults).toMatchObject({
      limits: { memoryBytes: GiB / 2, pids: 4_096 },
      network: 'open',
      idleSeconds: 60,
    })
  })

  test('applies an over-commitment that was set on a machine with one owner', () => {
    const { machine } = resolve({ overcommit: { memory: 1.5 } }, { isShared: false })
    expect(machine).toMatchObject({ memoryBytes: 24 * GiB, diskBytes: null })
  })

  test('does not stop idle containers, which would lose their files', () => {
    const { sandbox, machine } = resolve({}, { machine: undefined, filesSurviveStop: false })
    expect(sandbox).toMatchObject({ idleSeconds: null, networks: ['none', 'allowlist'] })
    expect(machine).toMatchObject({ running: 100, memoryBytes: null })
  })
})

test('a sandbox from before a ceiling was lowered runs within it and keeps its disk', () => {
  const settings = {
    limits: { memoryBytes: 16 * GiB, milliCpus: 100, pids: 9_000, diskBytes: 100 * GiB },
    network: { policy: 'open', allow: [] },
    env: { A: '1' },
  } as const
  expect(settingsWithin(settings, resolve())).toEqual({
    limits: { memoryBytes: 8 * GiB, milliCpus: 100, pids: 4_096, diskBytes: 100 * GiB },
    network: { policy: 'none', allow: [] },
    env: { A: '1' },
  })
})

describe('checkCeilings', () => {
  const sandbox = { limits: DEFAULT_SANDBOX_LIMITS, network: { policy: 'none' } } as const

  test('grants what fits', () => {
    const adds = { running: 1, memoryBytes: GiB }
    expect(checkCeilings({ sandbox, adds }, { account: {}, machine: {} }, resolve())).toBeUndefined()
  })

  test('checks each setting of a sandbox', () => {
    const check = (part: object) => checkCeilings({ sandbox: { ...sandbox, ...part } }, {}, resolve())
    for (const name of ['memoryBytes', 'milliCpus', 'pids', 'diskBytes'] as const) {
      const limit = resolve().sandbox[name]
      expect(check({ limits: { ...DEFAULT_SANDBOX_LIMITS, [name]: limit } })).toBeUndefined()
      expect(check({ limits: { ...DEFAULT_SANDBOX_LIMITS, [name]: limit + 1 } })).toEqual({
        level: 'sandbox',
        resource: name,
        limit,
        asked: limit + 1,
      })
    }
    expect(check({ network: { policy: 'open' } })).toMatchObject({ resource: 'networks', asked: 'open' })
    expect(check({ idleSeconds: 86_401 })).toMatchObject({ resource: 'idleSeconds', asked: 86_401 })
    expect(check({ idleSeconds: null })).toMatchObject({ resource: 'idleSeconds', asked: null })
    expect(check({ idleSeconds: 60 })).toBeUndefined()
  })

  test('checks the account before the machine', () => {
    const ceilings = resolve({ account: { running: 2 }, machine: { running: 3 } }, { isShared: false })
    const check = (account: number, machine: number) =>
      checkCeilings(
        { adds: { running: 1 } },
        { account: { running: account }, machine: { running: machine } },
        ceilings,
      )
    expect(check(1, 2)).toBeUndefined()
    expect(check(2, 3)).toMatchObject({ level: 'account', limit: 2, used: 2 })
    expect(check(1, 3)).toMatchObject({ level: 'machine', limit: 3, used: 3 })
  })

  test('ignores what a request does not add, even above its ceiling', () => {
    const ceilings = resolve({ account: { diskBytes: 0, running: 1 } })
    expect(checkCeilings({ adds: { running: 1 } }, { account: { diskBytes: 5 } }, ceilings)).toBeUndefined()
  })

  test('leaves every further account a share, whatever the earlier ones take', () => {
    const ceilings = resolve({ machine: { running: 100 } })
    const taken = new Map<string, number>()
    const total = (): number => [...taken.values()].reduce((sum, count) => sum + count, 0)
    const takeAll = (account: string): number => {
      for (;;) {
        const own = taken.get(account) ?? 0
        const usage = { account: { running: own }, machine: { running: total() } }
        if (checkCeilings({ adds: { running: 1 } }, usage, ceilings) !== undefined) return own
        taken.set(account, own + 1)
      }
    }
    expect(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(takeAll)).toEqual([50, 25, 13, 6, 3, 2, 1])
    // What an account returns is shared again.
    taken.set('a', 10)
    expect(takeAll('h')).toBe(20)
  })

  test('shares memory like slots', () => {
    const ceilings = resolve({ machine: { memoryBytes: 8 * GiB } })
    const check = (own: number, all: number) =>
      checkCeilings(
        { adds: { memoryBytes: GiB } },
        { account: { memoryBytes: own * GiB }, machine: { memoryBytes: all * GiB } },
        ceilings,
      )
    expect(check(3, 3)).toBeUndefined()
    expect(check(4, 4)).toMatchObject({ resource: 'memoryBytes', isReserved: true })
    expect(check(0, 7)).toBeUndefined()
    expect(check(0, 8)).toMatchObject({ level: 'machine', limit: 8 * GiB })
  })
})

describe('ceilingError', () => {
  test('names the ceiling, and how much is in use by the account', () => {
    const violation = {
      level: 'account',
      resource: 'memoryBytes',
      limit: 8 * GiB,
      asked: GiB,
      used: 7.5 * GiB,
    } as const
    const { code, message, details } = ceilingError(violation, 'start the sandbox')
    expect(code).toBe('ceiling_exceeded')
    expect(message).toBe(
      'Cannot start the sandbox: your account may have at most 8 GiB of memory (in use: 7.5 GiB, requested: 1 GiB)',
    )
    expect(details).toEqual({
      ceiling: 'account.memoryBytes',
      limit: 8 * GiB,
      asked: GiB,
      used: 7.5 * GiB,
    })
  })

  test('does not tell how much other accounts use', () => {
    const violation = { level: 'machine', resource: 'running', limit: 10, asked: 1, used: 10 } as const
    const { message, details } = ceilingError(violation, 'start the sandbox')
    expect(message).toBe(
      'Cannot start the sandbox: this server may have at most 10 running sandboxes (requested: 1)',
    )
    expect(details).toEqual({ ceiling: 'machine.running', limit: 10, asked: 1 })
  })
})

describe('the machine', () => {
  test('adds up what accounts report, and forgets running sandboxes that are no longer reported', () => {
    const store = new MachineStore(sqlOf(new Database(':memory:')))
    store.set('a', { running: 2, memoryBytes: 5, sandboxes: 3, diskBytes: 7 }, 0)
    store.set('b', { running: 1, memoryBytes: 1, sandboxes: 1, diskBytes: 1 }, RUNNING_EXPIRES_MS)
    expect(store.total(0)).toMatchObject({
      accounts: 2,
      running: 3,
      memoryBytes: 6,
      sandboxes: 4,
      diskBytes: 8,
    })
    expect(store.total(0, 'a')).toMatchObject({ running: 1, diskBytes: 1 })
    expect(store.total(RUNNING_EXPIRES_MS)).toMatchObject({ running: 1, memoryBytes: 1, sandboxes: 4 })
    store.set('a', { running: 0, sandboxes: 0 }, 0)
    expect(store.total(0)).toMatchObject({ accounts: 1, running: 1 })
  })
})

function view(id: string, state: SandboxView['state'] = 'creating'): SandboxView {
  return {
    id,
    name: id,
    state,
    reason: null,
    createdMs: 1,
    startedMs: null,
    lastActivityMs: 1,
    sleepAfterSeconds: null,
    ephemeral: false,
    saved: null,
    network: { policy: 'none', allow: [] },
    limits: DEFAULT_SANDBOX_LIMITS,
    env: [],
  }
}

describe('the use of an account', () => {
  function open(settings: Partial<CeilingSettings> = {}, reserve = async (): Promise<void> => undefined) {
    const sql = sqlOf(new Database(':memory:'))
    const store = new AccountStore(sql)
    const ceilings = resolve(settings)
    const stored = new StoredBytes(sql, ceilings)
    const clock = { nowMs: 1_000_000 }
    const reports: Amounts[] = []
    const usage = new AccountUsage({
      store,
      stored,
      machine: { reserve, report: async (amounts) => void reports.push(amounts) },
      ceilings,
      countsLimits: true,
      nowMs: () => clock.nowMs,
    })
    const add = (id: string, state?: SandboxView['state']): void => {
      store.insertSandbox(id, id)
      store.setView(view(id, state ?? 'stopped'))
    }
    return { store, stored, usage, reports, clock, add }
  }
  const request = { limits: DEFAULT_SANDBOX_LIMITS, network: { policy: 'none' } } as const

  test('counts sandboxes that run or may run, and the disk of all', async () => {
    const { usage, add } = open()
    for (const state of ['running', 'creating', 'stopping', 'stopped', 'failed'] as const) add(state, state)
    await usage.claim('unreported', 'unreported', { ...request, limits: { ...request.limits, diskBytes: 5 } })
    expect(usage.amounts()).toEqual({
      running: 3,
      sandboxes: 6,
      memoryBytes: 3 * DEFAULT_SANDBOX_LIMITS.memoryBytes,
      milliCpus: 3 * DEFAULT_SANDBOX_LIMITS.milliCpus,
      pids: 3 * DEFAULT_SANDBOX_LIMITS.pids,
      diskBytes: 5 * DEFAULT_SANDBOX_LIMITS.diskBytes + 5,
    })
  })

  test('does not count the sandbox that starts twice', async () => {
    const { usage, add } = open({ account: { running: 1 } })
    add('a', 'creating')
    await usage.reserveStart(view('a'))
    add('b')
    expect(await rejectionOf(usage.reserveStart(view('b')))).toMatchObject({ code: 'ceiling_exceeded' })
  })

  test('stays as it was when the machine refuses', async () => {
    const { usage, store, add } = open({}, () => Promise.reject(new Error('full')))
    add('a')
    expect(await rejectionOf(usage.reserveStart(view('a')))).toMatchObject({ message: 'full' })
    expect(store.viewOf('a')?.state).toBe('stopped')
    expect(await rejectionOf(usage.claim('b', 'b', request))).toMatchObject({ message: 'full' })
    expect(store.idOf('b')).toBeUndefined()
  })

  test('gives the name of an interrupted creation to the next, with its id, and counts it once', async () => {
    const { usage, store, clock } = open({ account: { sandboxes: 1 } })
    expect(await usage.claim('a', 'first', request)).toEqual({ id: 'first', isNew: true })
    expect(await usage.claim('a', 'second', request)).toEqual({ id: 'first', isNew: false })
    clock.nowMs += 10_000
    expect(usage.find('a')).toBeUndefined()
    expect(await usage.claim('a', 'third', request)).toEqual({ id: 'first', isNew: true })
    store.setView(view('first'))
    clock.nowMs += 10_000
    expect(await usage.claim('a', 'fourth', request)).toEqual({ id: 'first', isNew: false })
    expect(usage.amounts()).toMatchObject({ sandboxes: 1, diskBytes: DEFAULT_SANDBOX_LIMITS.diskBytes })
  })

  test('is reported when it changes, and now and then while sandboxes run', async () => {
    const { usage, reports, clock, add } = open()
    add('a')
    await usage.report()
    await usage.report()
    expect(reports.length).toBe(1)
    clock.nowMs += RUNNING_EXPIRES_MS
    await usage.report()
    expect(reports.length).toBe(1)
    await usage.reserveStart(view('a'))
    clock.nowMs += RUNNING_EXPIRES_MS / 2
    await usage.report()
    expect(reports.at(-1)).toMatchObject({ running: 1 })
    expect(reports.length).toBe(2)
  })

  describe('of the store', () => {
    const settings = { account: { storedBytes: 100 } }

    test('ends at the ceiling, which the refusal names, also while several sandboxes save', () => {
      const { stored, usage, add } = open(settings)
      for (const id of ['one', 'two']) add(id)
      stored.admit('one', 60)
      expect(() => stored.admit('two', 41)).toThrow(
        'Cannot save the files: your account may have at most 100 bytes of saved files, runs and conversations (in use: 60 bytes, requested: 41 bytes)',
      )
      stored.admit('two', 40)
      expect(usage.uses()).toMatchObject({ storedBytes: { used: 100, limit: 100 } })
      expect(() => stored.check(1, 'create the run')).toThrow('Cannot create the run')
      // What the sandbox has counts, not what it was about to store.
      stored.set('one', { one: 10 })
      expect(stored.total).toBe(50)
      usage.remove('two')
      expect(stored.total).toBe(10)
    })

    test('counts content that a sandbox shares with its forks once, as long as one of them needs it', () => {
      const { stored } = open(settings)
      stored.set('parent', { parent: 50 })
      stored.set('fork', { parent: 40, fork: 5 })
      expect(stored.total).toBe(55)
      stored.remove('parent')
      expect(stored.total).toBe(45)
      stored.set('fork', { fork: 5 })
      expect(stored.total).toBe(5)
    })
  })

  test('counts sessions from the moment that they are admitted', () => {
    const { usage, clock } = open({ account: { sessions: 2 } })
    usage.admitSession('a')
    usage.admitSession('a')
    usage.admitSession('b')
    expect(() => usage.admitSession('c')).toThrow('your account may have at most 2 sessions')
    // Ended, or never started: its sandbox does not list it.
    clock.nowMs += 60_000
    usage.admitSession('c')
  })
})
