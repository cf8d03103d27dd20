import { describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS, type StartSpec } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { eventually, rejectionOf } from '@sandwire/testing'
import { findFakeSpritesProblem } from '@sandwire/testing/fake-sprites'
import { FAKE_SANDBOXD, openSpritesProvider } from './support/fake-sprites-provider.ts'
import { providerContract } from './support/provider-contract.ts'

const ID = '0'.repeat(32)
const SPEC: StartSpec = {
  id: ID,
  name: 'dev',
  publicKey: 'A'.repeat(43),
  env: {},
  network: { policy: 'none', allow: [] },
  limits: DEFAULT_SANDBOX_LIMITS,
}
const SERVICE = '/services/sandwire'
const problem = findFakeSpritesProblem()

if (problem === undefined) providerContract('sprites', () => openSpritesProvider())

describe.skipIf(problem !== undefined)(
  `the sprites provider${problem === undefined ? '' : ` (${problem})`}`,
  () => {
    test('never destroys the sprite of the operator, whose files stay', async () => {
      await using made = await openSpritesProvider()
      await made.provider.start(SPEC)
      await made.provider.destroy(ID)
      expect(made.api.sprites.has('dev')).toBe(true)
      expect(made.api.sprite('dev').services.size).toBe(0)
      expect(
        made.api.requests.filter(({ method, path }) => method === 'DELETE' && !path.includes(SERVICE)),
      ).toEqual([])
    })

    test('creates a sprite for a sandbox, downloads sandboxd there, and destroys it with the sandbox', async () => {
      const url = 'http://127.0.0.1:9000/sandboxd'
      const program = { url, sha256: new Bun.CryptoHasher('sha256').update(FAKE_SANDBOXD).digest('hex') }
      await using made = await openSpritesProvider('', {}, program)
      const name = `sandwire-${ID}`
      expect(await rejectionOf(made.provider.start(SPEC))).toMatchObject({ code: 'sandbox_failed' })
      expect(made.api.sprites.has(name)).toBe(true)
      // A server inside the sprite, which has no other network.
      const serve = `Bun.serve({ port: 9000, fetch: () => new Response(${JSON.stringify(FAKE_SANDBOXD)}) })`
      await made.request(
        `/${name}/services/files`,
        'PUT',
        JSON.stringify({ cmd: process.execPath, args: ['-e', serve] }),
      )
      await eventually(async () => (await made.provider.start(SPEC)).state === 'running', {
        what: 'the start',
      })
      await made.provider.destroy(ID)
      expect(made.api.sprites.has(name)).toBe(false)
      expect(made.api.sprites.has('dev')).toBe(true)
    })

    test('streams bodies in both directions, follows no redirect and aborts on request', async () => {
      await using made = await openSpritesProvider()
      const status = await made.provider.start(SPEC)
      const address = status.state === 'running' ? status.address : ''
      const body = new Blob(['hello ', 'world']).stream()
      const echo = await made.provider.fetch(address, { method: 'PUT', path: '/echo', headers: {}, body })
      expect(await echo.text()).toBe('hello world')
      expect(echo.headers.get('x-sandbox')).toBe('yes')
      const posted = await made.provider.fetch(address, {
        method: 'POST',
        path: '/e',
        headers: {},
        body: 'text',
      })
      expect(await posted.text()).toBe('text')
      const moved = await made.provider.fetch(address, { method: 'GET', path: '/moved', headers: {} })
      expect(moved.status).toBe(302)
      const large = await made.provider.fetch(address, { method: 'GET', path: '/large', headers: {} })
      expect((await large.arrayBuffer()).byteLength).toBe(8 * 1024 * 1024)
      const stopping = new AbortController()
      const request = { method: 'GET', path: '/hangs', headers: {}, signal: stopping.signal } as const
      const hanging = rejectionOf(made.provider.fetch(address, request))
      stopping.abort(new SandwireError('timed_out', 'late'))
      expect(await hanging).toMatchObject({ code: 'timed_out' })
    })

    test('refuses addresses, methods and paths that are not its own', async () => {
      await using made = await openSpritesProvider()
      const status = await made.provider.start(SPEC)
      const address = status.state === 'running' ? status.address : ''
      const get = { method: 'GET', path: '/', headers: {} } as const
      for (const other of ['sprite:other', 'sprite:../x', 'slot:1', 'http://169.254.169.254'])
        expect(await rejectionOf(made.provider.fetch(other, get))).toMatchObject({
          code: 'sandbox_unreachable',
        })
      for (const path of ['/a b', '/a\r\nx: y', 'http://evil', ''])
        expect(await rejectionOf(made.provider.fetch(address, { ...get, path }))).toMatchObject({
          code: 'sandbox_unreachable',
        })
      const headers = { 'x-a': 'b\r\nx-injected: 1' }
      expect(await rejectionOf(made.provider.fetch(address, { ...get, headers }))).toMatchObject({
        code: 'sandbox_unreachable',
      })
      const targets = made.api.requests.filter(({ path }) => path.endsWith('/proxy')).map(({ path }) => path)
      expect(new Set(targets)).toEqual(new Set(['/v1/sprites/dev/proxy']))
    })

    test('reports a cold sprite as stopped, and starts it with a new epoch', async () => {
      await using made = await openSpritesProvider()
      const first = await made.provider.start(SPEC)
      made.api.sprite('dev').freeze()
      expect((await made.provider.status(ID)).state).toBe('running')
      await made.api.sprite('dev').freezeCold()
      expect(await made.provider.status(ID)).toEqual({ id: ID, state: 'stopped', reason: 'cold' })
      const second = await made.provider.start(SPEC)
      expect(second.state === 'running' && first.state === 'running' && second.epoch !== first.epoch).toBe(
        true,
      )
    })

    test('finds its service after its object was evicted, and sees that the API restarted it', async () => {
      await using made = await openSpritesProvider()
      const first = await made.provider.start(SPEC)
      expect(await made.reopen().status(ID)).toEqual(first)
      expect(await made.reopen().start(SPEC)).toEqual(first)
      made.api.sprite('dev').services.get('sandwire')?.signal('SIGKILL')
      for (
        let tries = 0;
        tries < 100 && made.api.sprite('dev').services.get('sandwire')?.starts !== 2;
        tries++
      )
        await Bun.sleep(20)
      const after = await made.provider.start(SPEC)
      expect(after.state === 'running' && first.state === 'running' && after.epoch !== first.epoch).toBe(true)
    })

    test('tells apart what is wrong', async () => {
      await using made = await openSpritesProvider()
      expect(await made.provider.health()).toMatchObject({ isolation: 'sprite' })
      const { behavior } = made.api
      const answers: readonly (readonly [number, string])[] = [
        [401, 'bad_token'],
        [403, 'bad_token'],
        [404, 'sprite_not_found'],
        [503, 'unreachable'],
        [429, 'unreachable'],
      ]
      for (const [status, expected] of answers) {
        made.breaker.succeeded()
        behavior.intercept = () => Response.json({ error: 'RAW secret' }, { status })
        const error = await rejectionOf(made.provider.health())
        expect(error).toMatchObject({ code: 'provider_unavailable', problem: expected })
        expect(error?.message).not.toContain('RAW')
      }
      behavior.intercept = undefined
      made.breaker.succeeded()
      await fetch(`${made.api.url}/v1/sprites/dev/fs/delete?path=/srv/workspace-api/sandboxd`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${made.api.token}` },
      })
      expect(await rejectionOf(made.provider.health())).toMatchObject({ problem: 'bad_path' })
    })

    test('reports a service of another version', async () => {
      const checkVersion = async () => {
        throw new SandwireError('version_unsupported', 'old')
      }
      await using made = await openSpritesProvider('dev', { checkVersion })
      await made.provider.start(SPEC)
      expect(await rejectionOf(made.provider.health())).toMatchObject({ problem: 'version_mismatch' })
    })

    test('retries when the API is briefly unavailable, and stops calling it when it stays so', async () => {
      await using made = await openSpritesProvider()
      let failures = 2
      made.api.behavior.intercept = () => (failures-- > 0 ? new Response('busy', { status: 503 }) : undefined)
      expect((await made.provider.start(SPEC)).state).toBe('running')
      made.api.behavior.intercept = () => new Response('busy', { status: 503 })
      for (let calls = 0; calls < 3; calls++) await rejectionOf(made.provider.status(ID))
      expect(made.breaker.state.kind).toBe('open')
      const before = made.api.requests.length
      await rejectionOf(made.provider.status(ID))
      expect(made.api.requests).toHaveLength(before)
    })

    test('closes connections that hang when they must end', async () => {
      await using made = await openSpritesProvider()
      const status = await made.provider.start(SPEC)
      const address = status.state === 'running' ? status.address : ''
      const hanging = rejectionOf(
        made.provider.fetch(address, { method: 'GET', path: '/hangs', headers: {} }),
      )
      let isSettled = false
      void hanging.then(() => (isSettled = true))
      await eventually(
        async () => {
          await made.provider.disconnectAll()
          return isSettled
        },
        { what: 'the connection to close' },
      )
      expect(await hanging).toMatchObject({ code: 'sandbox_unreachable' })
    })
  },
)
