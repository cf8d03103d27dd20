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
    isolation: null,
    network: {
      policy: 'none',
      allow: [],
    },
    ...(access === undefined ? {} : { access }),
  }))
  return { is: 'ready', value } as const
}
const somebody = (guest: boolean) => ({ is: 'ready', value: { account: 'a', name: 'Gus', guest } }) as const

test('a person works in their own sandboxes and those shared as a whole, not where they watch or know one session', () => {
  const known = listed({ id: 'a' }, { id: 'b', access: 'collaborator' }, { id: 'c', access: 'viewer' })
  expect(['a', 'name-b', 'c', 'd'].map((sandbox) => canWorkIn(known, sandbox))).toEqual([
    true,
    true,
    false,
    false,
  ])
})

test('the first sandbox need not exist, and an unknown list keeps nobody from trying', () => {
  expect(canWorkIn(listed(), 'dev')).toBe(true)
  expect(canWorkIn({ is: 'loading' }, 'a')).toBe(true)
})

test('a guest has no place for shells of their own until a sandbox is shared with them to work in', () => {
  expect(canWork(somebody(false), listed())).toBe(true)
  expect(canWork(somebody(true), listed())).toBe(false)
  expect(canWork(somebody(true), { is: 'loading' })).toBe(false)
  expect(canWork(somebody(true), listed({ id: 'c', access: 'viewer' }))).toBe(false)
  expect(canWork(somebody(true), listed({ id: 'b', access: 'collaborator' }))).toBe(true)
})
