import { describe, expect, test } from 'bun:test'
import { AUTHORITIES } from '@sandwire/internal-api'
import { listRoutes } from './api.ts'
import { BEARER, type Caller } from '../caller.ts'
import { WORKSPACE_ROUTES } from '../workspace/routes/routes.ts'
import { checkChange, checkRoute, checkStart, narrowRole, ROUTE_AUTHORITIES } from './authorization.ts'

const FORBIDDEN: unknown = expect.objectContaining({ code: 'forbidden' })
const caller = (changes: Partial<Caller>): Caller => ({ ...BEARER, identity: 'local:1', ...changes })

describe('ROUTE_AUTHORITIES', () => {
  test('(threat T11) has a row for every route and no other', () => {
    expect(Object.keys(ROUTE_AUTHORITIES).toSorted()).toEqual(
      [
        ...listRoutes(),
        'GET /attach',
        'GET /envelopes/pty',
        'GET /envelopes/text',
        'GET /agents/:id/claude-stream',
      ].toSorted(),
    )
  })

  test('lets control manage sessions, versions and agents, but not attach, start processes or read output', () => {
    const allowed = Object.keys(ROUTE_AUTHORITIES).filter((route) =>
      ROUTE_AUTHORITIES[route]?.includes('control'),
    )
    expect(allowed.toSorted()).toEqual([
      'DELETE /agents/:id',
      'DELETE /sessions/:id',
      'GET /__meta/version',
      'GET /activity',
      'GET /agents',
      'GET /agents/:id',
      'GET /agents/:id/diff',
      'GET /agents/:id/events',
      'GET /agents/:id/pack',
      'GET /agents/:id/result',
      'GET /agents/change',
      'GET /metrics',
      'GET /sessions',
      'GET /sessions/:id',
      'GET /versions/changes',
      'GET /versions/saves/:id',
      'GET /versions/segments/:id',
      'POST /agents/:id/approvals',
      'POST /agents/:id/interrupt',
      'POST /agents/:id/messages',
      'POST /agents/:id/stop',
      'POST /attachments/close',
      'POST /sessions/:id/signal',
      'POST /versions/adopt/:id',
      'POST /versions/restore',
      'POST /versions/restore/:id',
      'POST /versions/saves',
      'POST /versions/saves/:id',
      'PUT /agents/:id',
      'PUT /stop-reason',
      'PUT /versions/segments/:id',
    ])
  })

  test('lets viewers and collaborators use only GET routes', () => {
    for (const [route, row] of Object.entries(ROUTE_AUTHORITIES)) {
      const isBelowDriver = row.includes('viewer') || row.includes('collaborator')
      if (isBelowDriver) expect(route).toStartWith('GET ')
    }
  })

  test('restricts a route without a row to callers with the secret', () => {
    for (const authority of AUTHORITIES)
      expect(() => checkRoute(caller({ authority }), 'GET /new')).toThrow(FORBIDDEN)
    expect(() => checkRoute(BEARER, 'GET /new')).not.toThrow()
    expect(() => checkRoute(caller({ authority: 'control' }), '__proto__')).toThrow(FORBIDDEN)
  })
})

describe('workspace routes', () => {
  const routes = Object.entries(WORKSPACE_ROUTES).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { access }]) => ({ name: `${method} ${path}`, method, access })),
  )

  test('(threat T11) are open to drivers only', () => {
    for (const { name } of routes) expect([name, ROUTE_AUTHORITIES[name]]).toEqual([name, ['driver']])
  })

  test('(threat T11) need `exec` for every method that changes files', () => {
    for (const { name, method, access } of routes)
      if (method !== 'GET' && method !== 'HEAD') expect([name, access]).toEqual([name, 'change'])
    expect(() => checkChange(caller({ authority: 'driver', exec: true }))).not.toThrow()
    expect(() => checkChange(caller({ authority: 'driver', exec: false }))).toThrow(FORBIDDEN)
  })
})

test('checkStart accepts `starts` from a driver only, for commands made from a template', () => {
  for (const authority of AUTHORITIES) {
    const start = (): void => checkStart(caller({ authority, exec: false, starts: true }))
    if (authority === 'driver') expect(start).not.toThrow()
    else expect(start).toThrow(FORBIDDEN)
    expect(() => checkStart(caller({ authority, exec: false, starts: false }))).toThrow(FORBIDDEN)
  }
})

test('checkStart accepts `exec` from a driver only', () => {
  expect(() => checkStart(BEARER)).not.toThrow()
  expect(() => checkStart(caller({ authority: 'driver', exec: true }))).not.toThrow()
  for (const authority of AUTHORITIES) {
    expect(() => checkStart(caller({ authority, exec: false }))).toThrow(FORBIDDEN)
    if (authority !== 'driver') expect(() => checkStart(caller({ authority, exec: true }))).toThrow(FORBIDDEN)
  }
})

test('narrowRole accepts a role up to that of the caller and refuses a higher one', () => {
  expect(narrowRole(caller({ authority: 'collaborator' }), undefined)).toBe('collaborator')
  expect(narrowRole(caller({ authority: 'driver' }), 'viewer')).toBe('viewer')
  expect(narrowRole(BEARER, undefined)).toBe('driver')
  const viewer = caller({ authority: 'viewer', templateRole: 'driver' })
  expect(narrowRole(viewer, undefined)).toBe('viewer')
  expect(narrowRole(viewer, 'driver', true)).toBe('driver')
  expect(() => narrowRole(viewer, 'driver', false)).toThrow(FORBIDDEN)
  for (const [authority, role] of [
    ['viewer', 'driver'],
    ['viewer', 'collaborator'],
    ['collaborator', 'driver'],
    ['control', 'viewer'],
    ['control', undefined],
  ] as const)
    expect(() => narrowRole(caller({ authority }), role)).toThrow(FORBIDDEN)
})
