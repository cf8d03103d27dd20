import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { type RunningControl, startControl } from '../../apps/control/test/support/control.ts'
import { FakeSandboxes } from '../../apps/control/test/support/fake-sandboxes.ts'
import { findBrowserProblem, openSharedBrowser } from './support/browser.ts'
import { buildWorkbench } from './support/built-workbench.ts'

const CODE = 'c'.repeat(32)
const COOKIE =
  /^__Host-sandwire=(sws_local\.[A-Za-z0-9_-]{43}); Path=\/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict$/

let sandboxes: FakeSandboxes
let control: RunningControl
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  control = await startControl({ runner: sandboxes, workbench: await buildWorkbench() })
  await control.fetch('/api/sandboxes', { method: 'POST', json: { name: 'dev', start: false } })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

/** Sends a request without the token. */
function request(
  path: string,
  init: { method?: string; headers?: Record<string, string>; json?: unknown } = {},
) {
  return fetch(`http://127.0.0.1:${control.port}${path}`, {
    method: init.method ?? 'GET',
    headers: {
      host: `localhost:${control.port}`,
      ...(init.json === undefined ? {} : { 'content-type': 'application/json' }),
      ...init.headers,
    },
    ...(init.json === undefined ? {} : { body: JSON.stringify(init.json) }),
  })
}

/** Signs in and returns the Cookie header. */
async function signIn(): Promise<string> {
  control.host.codes.add(CODE)
  const response = await request('/api/signin', {
    method: 'POST',
    json: { code: CODE },
    headers: { origin: control.origin },
  })
  expect(response.status).toBe(204)
  const value = COOKIE.exec(response.headers.get('set-cookie') ?? '')?.[1]
  return `__Host-sandwire=${value ?? ''}`
}

describe('signing in', () => {
  test('accepts a code once, from our own page, and sets an HttpOnly cookie', async () => {
    const cookie = await signIn()
    const headers = { cookie, 'sec-fetch-site': 'same-origin' }
    expect((await request('/api/sandboxes', { headers })).status).toBe(200)
    const again = await request('/api/signin', {
      method: 'POST',
      json: { code: CODE },
      headers: { origin: control.origin },
    })
    expect(again.status).toBe(401)
    expect(again.headers.get('set-cookie')).toBeNull()
  })

  test('is refused without an Origin or from another one (threat T1)', async () => {
    control.host.codes.add(CODE)
    for (const headers of [{}, { origin: 'https://evil.example' }, { origin: 'null' }]) {
      const response = await request('/api/signin', { method: 'POST', json: { code: CODE }, headers })
      expect(response.status).toBe(403)
    }
    expect(control.host.codes.delete(CODE)).toBe(true)
  })

  test('ends on request', async () => {
    const cookie = await signIn()
    const headers = { cookie, origin: control.origin }
    const out = await request('/api/signout', { method: 'POST', headers })
    expect(out.status).toBe(204)
    expect(out.headers.get('set-cookie')).toContain('Max-Age=0')
    expect((await request('/api/sandboxes', { headers })).status).toBe(401)
  })
})

describe('a cookie', () => {
  test('authorizes reads only from our own page (threat T1)', async () => {
    const cookie = await signIn()
    for (const site of ['cross-site', 'same-site', 'none', undefined]) {
      const headers = { cookie, ...(site === undefined ? {} : { 'sec-fetch-site': site }) }
      expect([site, (await request('/api/sandboxes', { headers })).status]).toEqual([site, 403])
    }
  })

  test('authorizes writes only with our exact Origin (threat T1)', async () => {
    const cookie = await signIn()
    const write = (headers: Record<string, string>): Promise<Response> =>
      request('/api/sandboxes/dev/start', { method: 'POST', headers: { cookie, ...headers } })
    expect((await write({ 'sec-fetch-site': 'same-origin' })).status).toBe(403)
    expect((await write({ origin: 'null' })).status).toBe(403)
    expect((await write({ origin: control.origin.replace('http:', 'https:') })).status).toBe(403)
    expect((await write({ origin: control.origin })).status).toBe(200)
  })

  test('does not authorize /attach, with or without an Origin (threat T1)', async () => {
    const cookie = await signIn()
    const starts = sandboxes.starts
    for (const origin of [{}, { origin: control.origin }])
      for (const path of ['/attach?sandbox=dev&cmd=cat', '/metrics'])
        expect(
          (await request(path, { headers: { cookie, 'sec-fetch-site': 'same-origin', ...origin } })).status,
        ).toBe(401)
    expect(sandboxes.starts).toBe(starts)
  })

  test('is ignored when repeated or malformed', async () => {
    const cookie = await signIn()
    for (const bent of [
      `${cookie}; ${cookie}`,
      cookie.slice(0, -1),
      cookie.replace('__Host-', ''),
      `${cookie}x`,
    ]) {
      const headers = { cookie: bent, 'sec-fetch-site': 'same-origin' }
      expect((await request('/api/sandboxes', { headers })).status).toBe(401)
    }
  })

  test('does not authorize a request with a wrong token', async () => {
    const headers = { cookie: await signIn(), authorization: 'Bearer wrong', 'sec-fetch-site': 'same-origin' }
    expect((await request('/api/sandboxes', { headers })).status).toBe(401)
  })
})

describe('a page', () => {
  test('runs only its own script and cannot be framed', async () => {
    for (const path of ['/', '/signin']) {
      const response = await request(path)
      const html = await response.text()
      expect(response.headers.get('content-security-policy')).toContain(
        "default-src 'none'; script-src 'self'",
      )
      expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      expect(html).not.toMatch(/<script>|onclick|style=/)
    }
  })
})

const problem = findBrowserProblem()
describe.skipIf(problem !== undefined)(
  `the sign-in link in Chromium${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await openSharedBrowser()
    })

    test('signs in, removes the code from the URL and shows the sandboxes', async () => {
      control.host.codes.add(CODE)
      await using page = await browser.newPage()
      // A user with the page already open follows the link in the same tab.
      await page.goto(`${control.origin}/signin`)
      await page.getByLabel('Link or code').waitFor()
      await page.goto(`${control.origin}/signin#${CODE}`)
      await page.getByRole('button', { name: /^dev\b/ }).waitFor()
      expect(page.url()).toBe(`${control.origin}/`)
      await page.getByText('Signed in as owner').waitFor()
      expect(await page.evaluate(() => document.cookie)).toBe('')
      await page.goBack()
      expect(page.url()).not.toContain(CODE)
      await page.close()
    })

    test.each([
      ['/join', '/join'],
      ['//evil.example/', '/'],
      ['/\\evil.example/', '/'],
      ['https://evil.example/', '/'],
      ['javascript:alert(1)', '/'],
    ])('redirects to %j only if it is on this server (open redirect)', async (to, path) => {
      await using page = await browser.newPage()
      await page.goto(`${control.origin}/signin?${new URLSearchParams({ to }).toString()}`)
      control.host.codes.add(CODE)
      // A user may paste the whole link.
      await page.getByLabel('Link or code').fill(`${control.origin}/signin#${CODE}`)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.waitForURL((url) => url.pathname !== '/signin')
      expect(page.url()).toBe(control.origin + path)
      await page.close()
    })

    test('does not work for a page of another origin', async () => {
      const evil = Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        fetch: () =>
          new Response('<!doctype html><title>evil</title>', { headers: { 'content-type': 'text/html' } }),
      })
      await using page = await browser.newPage()
      control.host.codes.add(CODE)
      await page.goto(`${control.origin}/signin#${CODE}`)
      await page.getByRole('button', { name: /^dev\b/ }).waitFor()
      // The same site, `localhost`, on another port: the browser sends the cookie along.
      await page.goto(`http://localhost:${evil.port}/`)
      const found = await page.evaluate(async (origin) => {
        const read = await fetch(`${origin}/api/sandboxes`, { credentials: 'include' }).then(
          (response) => response.text(),
          () => 'nothing',
        )
        const socket = new WebSocket(`${origin.replace('http', 'ws')}/attach?cmd=cat`, ['sandwire.v1'])
        const opened = await new Promise((resolve) => {
          socket.onopen = () => resolve('open')
          socket.onerror = () => resolve('refused')
        })
        return [read, opened]
      }, control.origin)
      expect(found).toEqual(['nothing', 'refused'])
      await page.close()
      await evil.stop(true)
    })
  },
)
