import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningHost, startHost } from './support/control.ts'

/** A cold start builds a bundle. */
const TIMEOUT_MS = 120_000
const JSON_TYPE = { 'content-type': 'application/json' }
const problem = Bun.which('bwrap') === null ? 'no bubblewrap' : undefined

/** The same requests in both modes, with exact responses. */
const TALK: readonly (readonly [string, string, unknown, number, string])[] = [
  ['PUT', '/api/file?path=a/b.txt', { content: 'héllo\n' }, 200, '{"success":true,"path":"a/b.txt"}'],
  ['GET', '/api/file?path=a/b.txt', undefined, 200, '{"content":"héllo\\n","path":"a/b.txt"}'],
  [
    'GET',
    '/api/tree?path=a',
    undefined,
    200,
    '{"entries":[{"name":"b.txt","path":"a/b.txt","is_dir":false,"size":7}],"path":"a"}',
  ],
  ['GET', '/api/tree?path=none', undefined, 200, '{"entries":[],"path":"none"}'],
  [
    'GET',
    '/api/search?q=B*',
    undefined,
    200,
    '{"results":[{"name":"b.txt","path":"a/b.txt","dir":"a"}],"pattern":"B*","path":"."}',
  ],
  [
    'POST',
    '/api/file/rename',
    { old_path: 'a/b.txt', new_path: 'a/c.txt' },
    200,
    '{"success":true,"old_path":"a/b.txt","new_path":"a/c.txt"}',
  ],
  [
    'POST',
    '/api/file/move',
    { src_path: 'a/c.txt', dest_dir: '.' },
    200,
    '{"success":true,"old_path":"a/c.txt","dest_path":"c.txt"}',
  ],
  ['GET', '/api/file?path=a/b.txt', undefined, 404, '{"detail":"File not found: a/b.txt"}'],
  ['GET', '/api/file?path=a', undefined, 400, '{"detail":"Path is a directory: a"}'],
  ['DELETE', '/api/file?path=a', undefined, 200, '{"success":true,"path":"a"}'],
  ['GET', '/api/git/status', undefined, 200, '{"is_repo":false,"files":[]}'],
  ['DELETE', '/api/file?path=c.txt', undefined, 200, '{"success":true,"path":"c.txt"}'],
]

async function talk(host: RunningHost): Promise<void> {
  for (const [method, route, json, status, body] of TALK) {
    const response = await host.fetch(route, {
      method,
      ...(json === undefined ? {} : { headers: JSON_TYPE, body: JSON.stringify(json) }),
    })
    expect([method, route, response.status, await response.text()]).toEqual([method, route, status, body])
  }
}

async function make(host: RunningHost, name: string): Promise<void> {
  const body = JSON.stringify({ name })
  const made = await host.fetch('/api/sandboxes', { method: 'POST', headers: JSON_TYPE, body })
  expect(made.status).toBe(201)
}

describe.skipIf(problem !== undefined)('files through control', () => {
  let host: RunningHost
  beforeAll(async () => {
    host = await startHost()
    await make(host, 'default')
  }, TIMEOUT_MS)
  afterAll(() => host.stop(), TIMEOUT_MS)

  test('respond as the compat API defines', () => talk(host), TIMEOUT_MS)

  test(
    'accept exactly the fields of the OpenAPI document',
    async () => {
      const { paths } = Object(await (await host.fetch('/api/openapi.json')).json())
      const routes = Object.keys(paths).filter((path) => /\/(mkdir|rename|copy|git\/\w+)$/.test(path))
      const said: unknown[] = []
      for (const path of routes.filter((each) => each.startsWith('/api/workspaces/') && paths[each].post)) {
        const { properties } = paths[path].post.requestBody.content['application/json'].schema
        // The first unknown field of the body is reported.
        const body = JSON.stringify({ ...properties, unheardOf: 1 })
        const route = path.replace('{sandbox}', 'default')
        const answer = await host.fetch(route, { method: 'POST', headers: JSON_TYPE, body })
        said.push([path, Object(await answer.json()).error.message])
      }
      expect(said).toHaveLength(7)
      expect(said).toEqual(said.map((each) => [Object(each)[0], 'Cannot use field "unheardOf": unknown']))
    },
    TIMEOUT_MS,
  )

  test(
    'are the files that processes of the sandbox see',
    async () => {
      const put = await host.fetch('/api/workspaces/default/file?path=seen', {
        method: 'PUT',
        body: 'x'.repeat(5),
      })
      expect(put.status).toBe(200)
      const body = JSON.stringify({
        cmd: 'sh',
        args: ['-c', 'cat seen; echo made > made; id -u; stat -c %u seen'],
      })
      const ran = await host.fetch('/api/sandboxes/default/exec', {
        method: 'POST',
        headers: JSON_TYPE,
        body,
      })
      const [first, owner] = String(Object(await ran.json()).output)
        .trim()
        .split('\n')
      expect(first).toMatch(/^xxxxx\d+$/)
      expect(first).toBe(`xxxxx${owner}`)
      expect(await (await host.fetch('/api/workspaces/default/file?path=made')).text()).toBe('made\n')
    },
    TIMEOUT_MS,
  )
})

test.skipIf(problem !== undefined)(
  'serves a folder of this machine through the same routes',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandwire-served-'))
    writeFileSync(join(folder, 'there'), 'before')
    try {
      await using host = await startHost({ args: ['--workspace', folder] })
      await make(host, 'local')
      await talk(host)
      expect(await (await host.fetch('/api/file?path=there')).text()).toBe(
        '{"content":"before","path":"there"}',
      )
      await host.fetch('/api/file?path=new', {
        method: 'PUT',
        headers: JSON_TYPE,
        body: '{"content":"after"}',
      })
      expect(readFileSync(join(folder, 'new'), 'utf8')).toBe('after')
      expect(JSON.stringify(await (await host.fetch('/api/config')).json())).not.toContain(folder)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  TIMEOUT_MS,
)
