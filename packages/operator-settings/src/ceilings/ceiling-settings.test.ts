import { describe, expect, test } from 'bun:test'
import { NO_CEILING_SETTINGS, runningSandboxes, validateCeilingSettings } from './ceiling-settings.ts'

function problemsOf(raw: unknown): readonly string[] {
  const problems: string[] = []
  validateCeilingSettings(raw, problems)
  return problems
}

describe('validateCeilingSettings', () => {
  test('accepts nothing, and every setting', () => {
    expect(problemsOf({})).toEqual([])
    const limits = { memoryBytes: 2 ** 30, milliCpus: 500, pids: 64, diskBytes: 2 ** 30 }
    const totals = { ...limits, sandboxes: 5, running: 2 }
    const all = {
      sandbox: { ...limits, networks: ['none'], idleSeconds: null },
      account: { ...totals, storedBytes: 2 ** 30, sessions: 100, memoryBytes: null },
      machine: totals,
      overcommit: { memory: 1.5, cpus: 4 },
      defaults: { ...limits, network: 'none', idleSeconds: 60 },
    }
    expect(problemsOf(all)).toEqual([])
    expect(validateCeilingSettings(all, [])).toMatchObject(all)
  })

  test.each([
    [null, 'ceilings: expected an object'],
    [{ sandboxes: {} }, 'ceilings: "sandboxes" is not a setting'],
    [{ sandbox: 5 }, 'ceilings.sandbox: expected an object'],
    [{ sandbox: null }, 'ceilings.sandbox: expected an object'],
    [{ account: { memory: 5 } }, 'ceilings.account: "memory" is not a setting'],
    [
      { account: { running: -1 } },
      'ceilings.account: "running" must be a whole number from 0 to 10000, or null for none',
    ],
    [{ machine: { running: null } }, 'ceilings.machine: "running" must be a whole number from 1 to 10000'],
    [{ sandbox: { networks: [] } }, 'ceilings.sandbox: "networks" must be a list of none, allowlist, open'],
    [
      { sandbox: { networks: ['all'] } },
      'ceilings.sandbox: "networks" must be a list of none, allowlist, open',
    ],
    [{ overcommit: { memory: 0.5 } }, 'ceilings.overcommit: "memory" must be a number from 1 to 1000'],
    [
      { defaults: { network: 'open' }, sandbox: { networks: ['none'] } },
      'ceilings.defaults: "network" must be allowed by ceilings.sandbox.networks',
    ],
  ])('refuses %j', (raw, problem) => {
    expect(problemsOf(raw)).toEqual([problem])
  })
})

test('more sandboxes may run at once on a machine with more memory', () => {
  const GiB = 1024 ** 3
  const of = (memory: number): number => runningSandboxes(NO_CEILING_SETTINGS, memory * GiB)
  expect([0, 4, 16, 64, 512].map(of)).toEqual([100, 100, 128, 512, 1_000])
  expect(runningSandboxes({ ...NO_CEILING_SETTINGS, machine: { running: 7 } }, 16 * GiB)).toBe(7)
})
