import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { eventually, readDescendants } from '@sandwire/testing'
import { findFakeSpritesProblem } from '@sandwire/testing/fake-sprites'
import { Attached } from './support/attached.ts'
import { type RunningHost, startHost } from './support/control.ts'
import { openSpritesServer, type SpritesServer } from './support/sprites-server.ts'

const problem = findFakeSpritesProblem()

describe.skipIf(problem !== undefined)(
  `a host with sprites${problem === undefined ? '' : ` (${problem})`}`,
  () => {
    let sprites: SpritesServer
    let host: RunningHost
    beforeAll(async () => {
      sprites = await openSpritesServer()
      host = await startHost({ env: { ...sprites.env, WORKSPACE_MODE: 'sandbox' } })
    })
    afterAll(async () => {
      await host?.stop()
      await sprites?.[Symbol.asyncDispose]()
    })

    const send = (method: string, url: string, body?: object): Promise<Response> =>
      host.fetch(url, {
        method,
        ...(body !== undefined && {
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json' },
        }),
      })
    const server = () => ({
      ...host,
      sandbox: 'default',
      socketUrl: (url: string) => `ws://127.0.0.1:${host.port}${url}`,
    })

    test('has one sandbox, whose workspace is that of the sprite, from the first request of the compat API on', async () => {
      expect((await send('POST', '/api/sandboxes', { name: 'other', start: false })).status).toBe(404)
      expect(await (await host.fetch('/api/tree?path=.')).json()).toEqual({ entries: [], path: '.' })
      expect((await send('PUT', '/api/file?path=a/b.txt', { content: 'one' })).status).toBe(200)
      const file = path.join(sprites.api.sprite('dev').root, 'home/sprite/workspace/a/b.txt')
      expect(await readFile(file, 'utf8')).toBe('one')
      const tree: unknown = await (await host.fetch('/api/tree?path=a')).json()
      expect(tree).toMatchObject({ entries: [{ name: 'b.txt', is_dir: false, size: 3 }] })
    })

    test('streams what has no known length: matches and archives', async () => {
      const url = '/api/workspaces/default'
      const found = await (await host.fetch(`${url}/search?q=one`)).text()
      expect(found).toContain('"type":"match","path":"a/b.txt"')
      expect(found).toContain('{"type":"end","matches":1')
      const archive = await (await host.fetch(`${url}/archive?path=a`)).text()
      expect(archive).toContain('b.txt')
      expect(archive.length).toBeGreaterThan(1024)
    })

    test('keeps a session through a sprite that freezes and thaws', async () => {
      await using client = new Attached(server(), { cmd: 'sh', args: ['-c', 'echo ready; cat'] })
      await eventually(() => client.text.includes('ready'), { what: 'the process' })
      sprites.api.sprite('dev').freeze()
      await client.send('after\n')
      await eventually(() => client.text.includes('after'), { what: 'the echo' })
      expect(client.text).toBe('ready\nafter\n')
    })

    test('starts a cold sprite again, with its files', async () => {
      await sprites.api.sprite('dev').freezeCold()
      const show = async (): Promise<string> => (await host.fetch('/api/sandboxes/default')).text()
      await eventually(async () => (await show()).includes('"reason":"cold"'), { what: 'the end' })
      await send('POST', '/api/sandboxes/default/start')
      expect(await (await host.fetch('/api/file?path=a/b.txt')).json()).toMatchObject({ content: 'one' })
    })

    test('makes, lists and restores checkpoints of the sprite, also those made elsewhere', async () => {
      const url = '/api/sandboxes/default/checkpoints'
      sprites.api.sprite('dev').checkpoint('made elsewhere')
      expect((await send('POST', url, { name: 'first' })).status).toBe(201)
      expect(await (await host.fetch(url)).json()).toMatchObject({
        versions: [
          { version: 2, name: 'first', kind: 'checkpoint', isNewest: true },
          { version: 1, name: 'made elsewhere' },
        ],
      })
      await send('PUT', '/api/file?path=a/b.txt', { content: 'two' })
      expect((await send('POST', `${url}/none/restore`)).status).toBe(404)
      expect((await send('POST', `${url}/first/restore`)).status).toBe(200)
      expect(await (await host.fetch('/api/file?path=a/b.txt')).json()).toMatchObject({ content: 'one' })
      // The files before the restore are a checkpoint too.
      expect(await (await host.fetch(url)).json()).toMatchObject({ versions: [{ version: 3 }, {}, {}] })
    })

    test('reports an API that fails, without its text, and recovers', async () => {
      sprites.api.behavior.intercept = () => new Response('RAW upstream text', { status: 503 })
      await eventually(async () => (await host.fetch('/readyz')).status === 503, {
        what: 'the failure',
      })
      const ready = await (await host.fetch('/readyz')).text()
      expect(ready).toContain('"reason":"unreachable"')
      const read = await (await host.fetch('/api/file?path=a/b.txt')).text()
      expect(`${ready}${read}`).not.toContain('RAW')
      sprites.api.behavior.intercept = undefined
      await eventually(async () => (await host.fetch('/readyz')).status === 200, {
        what: 'the recovery',
      })
      await eventually(async () => (await host.fetch('/api/file?path=a/b.txt')).status === 200, {
        what: 'a read',
      })
      const metrics = await (await host.fetch('/metrics')).text()
      expect(metrics).toContain('sandwire_sprites_requests_total{status="200"}')
      expect(metrics).toContain('sandwire_sprites_ready_total 3')
    })

    test('has the token in no response, log, command line or process of the sandbox', async () => {
      const { token } = sprites.api
      const log = await readFile(path.join(host.data, 'host.log'), 'utf8')
      const answers = await Promise.all(
        ['/readyz', '/metrics', '/api/sandboxes', '/api/sandboxes/default/logs', '/health'].map(async (url) =>
          (await host.fetch(url)).text(),
        ),
      )
      const processes = readDescendants(host.pid)
        .map(({ pid }) => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
        .join()
      const inside = await (
        await send('POST', '/api/sandboxes/default/exec', {
          cmd: 'sh',
          args: ['-c', 'env; cat /srv/workspace-api/start.sh'],
        })
      ).text()
      for (const text of [log, host.output(), ...answers, processes, inside])
        expect(text).not.toContain(token)
      expect(sprites.api.requests.every(({ path: url }) => !url.includes(token))).toBe(true)
    })

    test('keeps the sprite and its files when the sandbox is destroyed', async () => {
      expect((await send('DELETE', '/api/sandboxes/default')).ok).toBe(true)
      expect(sprites.api.sprites.has('dev')).toBe(true)
      const file = path.join(sprites.api.sprite('dev').root, 'home/sprite/workspace/a/b.txt')
      expect(await readFile(file, 'utf8')).toBe('one')
    })
  },
)

describe.skipIf(problem !== undefined)('a host whose sprites cannot be used', () => {
  test('says whether the token, the address, the sprite or its program is wrong', async () => {
    await using sprites = await openSpritesServer()
    const failureOf = async (env: Record<string, string>): Promise<string> => {
      try {
        await using _ = await startHost({ env: { ...sprites.env, ...env } })
        return 'started'
      } catch (error) {
        return String(error)
      }
    }
    expect(await failureOf({ SPRITES_API_TOKEN: 'wrong' })).toContain('rejects the token')
    expect(await failureOf({ SPRITES_BASE_URL: 'http://127.0.0.1:9' })).toContain('does not respond')
    expect(await failureOf({ SPRITES_SPRITE_NAME: 'none' })).toContain('does not exist')
    await fetch(`${sprites.api.url}/v1/sprites/dev/fs/delete?path=/srv/workspace-api/sandboxd`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${sprites.api.token}` },
    })
    expect(await failureOf({})).toContain('not installed in the sprite')
  })
})
