import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ApiClient, linkIn, textIn } from './support/api-client.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

const CODE = 'c'.repeat(32)

let sandboxes: FakeSandboxes
let control: RunningControl
/** Hosts of a local server, as the host configures them. */
let plain: string
let owner: string
let guests: string
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  control = await startControl({
    runner: sandboxes,
    config: (port) => {
      ;[plain, owner, guests] = ['localhost', 'own.localhost', 'guests.localhost'].map(
        (name) => `${name}:${port}`,
      ) as [string, string, string]
      return {
        hosts: [plain, owner, guests],
        publicOrigins: [plain, owner, guests].map((host) => `http://${host}`),
        privateOrigins: { owner: `http://${owner}`, guests: `http://${guests}` },
      }
    },
  })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

/** A request of a page at one host to another. */
function post(path: string, json: unknown, host: string, page = host): Promise<Response> {
  return fetch(`http://127.0.0.1:${control.port}${path}`, {
    method: 'POST',
    headers: { host, origin: `http://${page}`, 'content-type': 'application/json' },
    body: JSON.stringify(json),
  })
}

async function codeOf(response: Response): Promise<string> {
  const body = (await response.json()) as { error: { code: string } }
  expect(response.headers.get('set-cookie')).toBeNull()
  return `${response.status} ${body.error.code}`
}

describe('a local server with private names (threat T1)', () => {
  test('accepts a sign-in code only under the name of its owner', async () => {
    control.host.codes.add(CODE)
    for (const [host, page] of [
      [plain, plain],
      [guests, guests],
      [plain, owner],
      [owner, plain],
      [guests, owner],
    ] as const)
      expect(await codeOf(await post('/api/signin', { code: CODE }, host, page))).toBe('403 origin_refused')
    const response = await post('/api/signin', { code: CODE }, owner)
    expect(response.status).toBe(204)
    expect(response.headers.get('set-cookie')).toContain('__Host-sandwire=sws_local.')
  })

  test('gives cookies to guests only under theirs, where share links lead', async () => {
    const client = new ApiClient(control, TOKEN)
    const made = await client.post('/api/sandboxes', { name: 'shared' })
    const shared = await client.post('/api/grants', { sandbox: textIn(made, 'id') })
    expect(new URL(textIn(shared, 'link')).host).toBe(guests)
    const link = linkIn(shared)
    for (const [host, page] of [
      [plain, plain],
      [owner, owner],
      [plain, guests],
    ] as const)
      expect(await codeOf(await post('/api/grants/redeem', { link }, host, page))).toBe('403 origin_refused')
    const response = await post('/api/grants/redeem', { link, name: 'Gus' }, guests)
    expect(response.status).toBe(200)
    expect(response.headers.get('set-cookie')).toContain('__Host-sandwire=sws_u')
  })

  test('gives tokens to programs under any name', async () => {
    const client = new ApiClient(control, TOKEN)
    const link = linkIn(await client.post('/api/grants', { sandbox: 'shared' }))
    const response = await fetch(`http://127.0.0.1:${control.port}/api/grants/redeem`, {
      method: 'POST',
      headers: { host: plain, 'content-type': 'application/json' },
      body: JSON.stringify({ link }),
    })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('"token":"swg_')
  })
})
