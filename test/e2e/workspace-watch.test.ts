import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** The user `nobody` of Debian. Only root can switch to it. */
const UID = 65_534
const isRoot = process.getuid?.() === 0

let sandboxd: RunningSandboxd
let workspace: string

beforeAll(async () => {
  workspace = mkdtempSync(join(tmpdir(), 'sandwire-watch-'))
  mkdirSync(join(workspace, 'src'))
  // Only the user may enter it, not sandboxd with its own rights.
  for (const path of [join(workspace, 'src'), workspace]) {
    chmodSync(path, 0o700)
    if (isRoot) chownSync(path, UID, UID)
  }
  sandboxd = await startSandboxd({ workspace, args: isRoot ? ['--run-as', `${UID}:${UID}`] : [] })
})
afterAll(async () => {
  await sandboxd.stop()
  rmSync(workspace, { recursive: true, force: true })
})

/** Collects the text of an event stream until it is aborted. */
async function follow(path: string): Promise<{ text: () => string; leave: () => void; response: Response }> {
  const leaver = new AbortController()
  const response = await sandboxd.fetch(path, { signal: leaver.signal })
  let text = ''
  void (async () => {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString()
  })().catch(() => undefined)
  return { text: () => text, leave: () => leaver.abort(), response }
}

/** Targets of sandboxd's descriptors; only root can read them. */
function openFiles(): string[] {
  if (!isRoot) return []
  return readdirSync(`/proc/${sandboxd.pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${sandboxd.pid}/fd/${fd}`)]
    } catch {
      // Closed since it was listed.
      return []
    }
  })
}

test('sends changes as events until the client disconnects', async () => {
  // The first watch opens an epoll instance that stays open.
  const first = await follow('/workspace/watch')
  await eventually(() => first.text().includes('ready'), { what: 'the first event' })
  first.leave()
  const isClosed = (): boolean => !openFiles().includes('anon_inode:inotify')
  await eventually(isClosed, { what: 'the queue to be closed' })
  const before = openFiles().length
  const { text, leave, response } = await follow('/workspace/watch?recursive=1')
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  await eventually(() => text() === ':\n\nevent: ready\ndata: {"folders":2}\n\n', { what: 'the first event' })
  writeFileSync(join(workspace, 'src/new\nline'), 'x')
  const change = 'event: change\ndata: {"paths":[{"path":"src/new\\nline","kind":"created"}]}\n\n'
  await eventually(() => text().endsWith(change), { what: 'the change' })
  leave()
  await eventually(() => openFiles().length <= before, { what: 'descriptors to be closed' })
})

test('refuses clients over the limit, and a disconnect frees a place', async () => {
  const clients = []
  for (let count = 0; count < 32; count += 1) clients.push(await follow('/workspace/watch?path=src'))
  const refused = await sandboxd.fetch('/workspace/watch')
  expect(refused.status).toBe(429)
  expect(await refused.json()).toMatchObject({ error: { code: 'rate_limited' } })
  for (const { leave } of clients) leave()
  await eventually(
    async () => {
      const client = await follow('/workspace/watch')
      client.leave()
      return client.response.status === 200
    },
    { what: 'room for another' },
  )
})

test.each([
  ['/workspace/watch?path=..', 400, 'path_refused'],
  ['/workspace/watch?path=none', 404, 'file_not_found'],
  ['/workspace/watch?recursive=yes', 400, 'bad_request'],
])('refuses to watch an invalid path (threat T12): %s', async (path, status, code) => {
  const response = await sandboxd.fetch(path)
  expect(response.status).toBe(status)
  expect(await response.json()).toMatchObject({ error: { code } })
})
