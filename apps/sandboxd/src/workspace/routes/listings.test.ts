import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rejectionOf } from '@sandwire/testing'
import { BEARER } from '../../caller.ts'
import { FilesThread } from '../thread/files-thread.ts'
import { Semaphore } from '../semaphore.ts'
import { COMPAT_ROUTES } from '../../compat/routes.ts'
import { type Workspace } from './route.ts'
import { WORKSPACE_ROUTES } from './routes.ts'

const ROUTES = { ...WORKSPACE_ROUTES, ...COMPAT_ROUTES }
const NAME = 'a'.repeat(200)
let root: string
let files: FilesThread
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'listings-'))
  mkdirSync(join(root, 'many'))
  for (let at = 0; at < 1_000; at += 1) writeFileSync(join(root, 'many', `${NAME}${at}`), '')
  writeFileSync(join(root, 'large'), 'x'.repeat(1024 * 1024))
  files = new FilesThread({
    createWorker: () => new Worker(new URL('../thread/files-worker.ts', import.meta.url).href),
    setUp: { root, umask: 0o022, user: undefined },
  })
})
afterAll(() => {
  files.stop()
  rmSync(root, { recursive: true })
})

/** Calls a route whose responses fit into memory one at a time. */
function createFetch(): (target: string, signal?: AbortSignal) => Promise<Response> {
  const budget = (): Semaphore => new Semaphore({ capacity: 1, maxWaiting: 64, waitMs: 1, refusal: 'full' })
  const workspace = { files, texts: budget(), searches: budget(), root } as unknown as Workspace
  return async (target, signal = new AbortController().signal) => {
    const url = new URL(target, 'http://localhost')
    const request = new Request(url, { signal })
    const handle = ROUTES[url.pathname]?.['GET']?.handle
    if (handle === undefined) throw new Error(`No route ${target}`)
    return handle({ request, url, caller: BEARER, requestId: 'r', id: '' }, { workspace })
  }
}

test.each([
  '/workspace/tree?path=many',
  '/workspace/compat/tree?path=many',
  '/workspace/find?q=a&limit=5000',
  '/workspace/compat/search?q=*',
  '/workspace/compat/file?path=large',
])('%s holds its memory until the response is read or the client is gone', async (target) => {
  const fetch = createFetch()
  const first = await fetch(target)
  expect(await rejectionOf(fetch(target))).toMatchObject({ code: 'rate_limited' })
  await first.body?.cancel()
  const client = new AbortController()
  await fetch(target, client.signal)
  expect(await rejectionOf(fetch(target))).toMatchObject({ code: 'rate_limited' })
  client.abort()
  expect((await (await fetch(target)).text()).length).toBeGreaterThan(64 * 1024)
  expect((await fetch(target)).status).toBe(200)
})
