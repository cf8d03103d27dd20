import { describe, expect, test } from 'bun:test'
import { AUTHORITIES } from '@sandwire/internal-api'
import { listRoutes } from './api.ts'
import { BEARER, type Caller } from '../caller.ts'
import { narrowRole } from './narrow-role.ts'
import { WORKSPACE_ROUTES } from '../workspace/routes/index.ts'
import { checkChange, checkRoute, checkStart, ROUTE_RIGHTS } from './route-rights.ts'

const caller = (changes: Partial<Caller>): Caller => ({ ...BEARER, identity: 'local:1', ...changes })

describe('the table of rights', () => {
  test('(threat T11) has a row for every route, and none for routes there are not', () => {
    expect(Object.keys(ROUTE_RIGHTS).toSorted()).toEqual(
      [...listRoutes(), 'GET /attach', 'GET /envelopes/pty'].toSorted(),
    )
  })

  test('lets control manage and not attach, start or read', () => {
    const allowed = Object.keys(ROUTE_RIGHTS).filter((route) => ROUTE_RIGHTS[route]?.includes('control'))
    expect(allowed.toSorted()).toEqual([
      'DELETE /sessions/:id',
      'GET /__meta/version',
      'GET /activity',
      'GET /metrics',
      'GET /sessions',
      'GET /sessions/:id',
      'POST /attachments/close',
      'POST /sessions/:id/signal',
      'PUT /stop-reason',
    ])
  })

  test('lets viewers and collaborators change nothing', () => {
    for (const [route, row] of Object.entries(ROUTE_RIGHTS)) {
      const isForWatchers = row.includes('viewer') || row.includes('collaborator')
      if (isForWatchers) expect(route).toStartWith('GET ')
    }
  })

  test('refuses everybody a route without a row, but whoever has the secret', () => {
    for (const authority of AUTHORITIES)
      expect(() => checkRoute(caller({ authority }), 'GET /new')).toThrow(/Cannot use this route/)
    expect(() => checkRoute(BEARER, 'GET /new')).not.toThrow()
    expect(() => checkRoute(caller({ authority: 'control' }), '__proto__')).toThrow(/Cannot use this route/)
  })
})

describe('the routes of a workspace', () => {
  const routes = Object.entries(WORKSPACE_ROUTES).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { right }]) => ({ name: `${method} ${path}`, method, right })),
  )

  test('(threat T11) are for drivers, and for nobody who only watches', () => {
    for (const { name } of routes) expect([name, ROUTE_RIGHTS[name]]).toEqual([name, ['driver']])
  })

  test('(threat T11) need the right to run commands for every method that changes something', () => {
    for (const { name, method, right } of routes)
      if (method !== 'GET' && method !== 'HEAD') expect([name, right]).toEqual([name, 'change'])
    expect(() => checkChange(caller({ authority: 'driver', exec: true }))).not.toThrow()
    expect(() => checkChange(caller({ authority: 'driver', exec: false }))).toThrow(/may not run commands/)
  })
})

test('checkStart lets a driver without exec start what control made of a template, and nobody else', () => {
  for (const authority of AUTHORITIES) {
    const start = (): void => checkStart(caller({ authority, exec: false, starts: true }))
    if (authority === 'driver') expect(start).not.toThrow()
    else expect(start).toThrow(/may not run commands/)
    expect(() => checkStart(caller({ authority, exec: false, starts: false }))).toThrow(
      /may not run commands/,
    )
  }
})

test('checkStart wants a driver with exec', () => {
  expect(() => checkStart(BEARER)).not.toThrow()
  expect(() => checkStart(caller({ authority: 'driver', exec: true }))).not.toThrow()
  for (const authority of AUTHORITIES) {
    expect(() => checkStart(caller({ authority, exec: false }))).toThrow(/may not run commands/)
    if (authority !== 'driver')
      expect(() => checkStart(caller({ authority, exec: true }))).toThrow(/may not run commands/)
  }
})

test('narrowRole takes a role within the credential, and never one above it', () => {
  expect(narrowRole(caller({ authority: 'collaborator' }), undefined)).toBe('collaborator')
  expect(narrowRole(caller({ authority: 'driver' }), 'viewer')).toBe('viewer')
  expect(narrowRole(BEARER, undefined)).toBe('driver')
  const watcher = caller({ authority: 'viewer', templateRole: 'driver' })
  expect(narrowRole(watcher, undefined)).toBe('viewer')
  expect(narrowRole(watcher, 'driver', true)).toBe('driver')
  expect(() => narrowRole(watcher, 'driver', false)).toThrow(/Cannot become driver/)
  for (const [authority, role] of [
    ['viewer', 'driver'],
    ['viewer', 'collaborator'],
    ['collaborator', 'driver'],
    ['control', 'viewer'],
    ['control', undefined],
  ] as const)
    expect(() => narrowRole(caller({ authority }), role)).toThrow(/Cannot/)
})
