import { expect, test } from 'bun:test'
import { ACTIONS, actionOf, ROUTE_ACTIONS } from '../src/audit/actions.ts'
import { POLICIES } from '../src/routes/policies.ts'

/** Routes that only read, although their policy needs more than the credential `read`. */
const HARMLESS = new Set(['GET /metrics'])

test('every route that changes something has an audit action', () => {
  const nameless = Object.entries(POLICIES)
    .filter(([route, policy]) => {
      const isRead = policy === 'public' ? route.startsWith('GET ') : policy.credential === 'read'
      return !isRead && !HARMLESS.has(route) && !Object.hasOwn(ROUTE_ACTIONS, route)
    })
    .map(([route]) => route)
  expect(nameless).toEqual([])
})

test('every audit action belongs to an existing route', () => {
  expect(Object.keys(ROUTE_ACTIONS).filter((route) => !Object.hasOwn(POLICIES, route))).toEqual([])
  const known: readonly string[] = ACTIONS
  expect(Object.values(ROUTE_ACTIONS).filter((action) => !known.includes(action))).toEqual([])
})

test('(threat T35) a route named like a property of Object.prototype has no audit action', () => {
  expect(actionOf('toString', '')).toBeUndefined()
  expect(actionOf('get', '/api/audit')).toBeUndefined()
  expect(actionOf('post', '/api/sandboxes')).toBe('sandbox.create')
})
