import { expect, test } from 'bun:test'
import type { Sandbox } from '../api/sandboxes.ts'
import { canWork, canWorkIn } from './rights.ts'

function listed(...rows: readonly Pick<Sandbox, 'id' | 'access'>[]) {
  const value = rows.map(({ id, access }): Sandbox => ({
    id,
    name: `name-${id}`,
    state: 'running',
    reason: null,
    createdMs: 0,
    startedMs: null,
    lastActivityMs: 0,
    sleepAfterSeconds: null,
    ephemeral: false,
    saved: null,
    isolation: null,
    network: {
      policy: 'none',
      allow: [],
    },
    ...(access === undefined ? {} : { access }),
  }))
  return { kind: 'ready', value } as const
}
const readyAccount = (guest: boolean) =>
  ({ kind: 'ready', value: { account: 'a', name: 'Gus', guest, firstSandbox: 'default' } }) as const

test('users work in their own and in wholly shared sandboxes, not where they only watch or join a session', () => {
  const known = listed({ id: 'a' }, { id: 'b', access: 'collaborator' }, { id: 'c', access: 'viewer' })
  expect(['a', 'name-b', 'c', 'd'].map((sandbox) => canWorkIn(readyAccount(false), known, sandbox))).toEqual([
    true,
    true,
    false,
    false,
  ])
})

test('the first sandbox need not exist, and anything may be tried before the list is loaded', () => {
  expect(canWorkIn(readyAccount(false), listed(), 'default')).toBe(true)
  expect(canWorkIn(readyAccount(false), listed(), 'dev')).toBe(false)
  expect(canWorkIn(readyAccount(false), { kind: 'loading' }, 'a')).toBe(true)
})

test('a guest cannot start shells until a sandbox is shared', () => {
  expect(canWork(readyAccount(false), listed())).toBe(true)
  expect(canWork(readyAccount(true), listed())).toBe(false)
  expect(canWork(readyAccount(true), { kind: 'loading' })).toBe(false)
  expect(canWork(readyAccount(true), listed({ id: 'c', access: 'viewer' }))).toBe(false)
  expect(canWork(readyAccount(true), listed({ id: 'b', access: 'collaborator' }))).toBe(true)
})
