import { expect, test } from 'bun:test'
import { Hono } from 'hono'
import { addResponseHeaders, respondPage } from '../src/http/respond.ts'

const PUBLIC = 'https://sandwire.example:8787'

function appWith({ publicOrigins = [PUBLIC], hasTls = true } = {}): Hono {
  const app = new Hono()
  app.use(addResponseHeaders({ publicOrigins, hasTls }))
  app.get('/page', () => respondPage('<p>page'))
  app.get('/file', () => new Response('bytes'))
  app.get('/redirect', () => new Response(null, { status: 303, headers: { location: '/page' } }))
  app.get('/error', () => {
    throw new Error('broken')
  })
  app.onError(() => new Response('broken', { status: 500 }))
  return app
}

const ANSWERS = ['/page', '/file', '/redirect', '/error', '/none']

test('no response can be framed, and none but pages can act (threat T1)', async () => {
  const app = appWith()
  for (const path of ANSWERS) {
    const policy = (await app.request(path)).headers.get('content-security-policy') ?? ''
    expect([path, policy]).toEqual([path, expect.stringContaining("frame-ancestors 'none'")])
    expect([path, policy.endsWith('sandbox')]).toEqual([path, path !== '/page'])
  }
})

test('a server that terminates TLS requires HTTPS under its public name', async () => {
  const headerOf = async (app: Hono, path: string, host: string) =>
    (await app.request(path, { headers: { host } })).headers.get('strict-transport-security')
  for (const path of ANSWERS)
    expect(await headerOf(appWith(), path, 'Sandwire.example:8787')).toBe('max-age=31536000')
  // It would apply to every port of these names.
  for (const host of ['localhost:8787', '127.0.0.1:8787', 'other.example', ''])
    expect(await headerOf(appWith(), '/page', host)).toBeNull()
  const local = appWith({ publicOrigins: ['https://localhost:8787'] })
  expect(await headerOf(local, '/page', 'localhost:8787')).toBeNull()
  // A proxy decides for itself.
  expect(await headerOf(appWith({ hasTls: false }), '/page', 'sandwire.example:8787')).toBeNull()
})
