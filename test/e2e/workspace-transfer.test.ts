import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TarBuffer, TarReader } from '@sandwire/tar'
import { eventually } from '@sandwire/testing'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

const ID = '0123456789abcdef'.repeat(2)

let sandboxd: RunningSandboxd
beforeAll(async () => {
  sandboxd = await startSandboxd()
})
afterAll(() => sandboxd.stop())
afterEach(() => {
  for (const name of readdirSync(sandboxd.workspace)) rmSync(at(name), { recursive: true, force: true })
})

function at(path: string): string {
  return join(sandboxd.workspace, path)
}

async function ask(
  method: string,
  path: string,
  body?: string | Uint8Array<ArrayBuffer>,
): Promise<[number, unknown]> {
  const answer = await sandboxd.fetch(path, { method, ...(body === undefined ? {} : { body }) })
  return [answer.status, await answer.json()]
}

test('downloads and uploads a folder with curl and tar', () => {
  mkdirSync(at('tree/sub'), { recursive: true })
  writeFileSync(at('tree/sub/f'), 'content')
  const line = `set -o pipefail; curl -sSf -H @- "$URL/workspace/archive?path=tree" <<< "authorization: $AUTH" | tar -tv`
  const env = { ...process.env, URL: sandboxd.url, AUTH: sandboxd.headers.authorization }
  const listed = Bun.spawnSync(['bash', '-c', line], { env })
  expect([listed.stderr.toString(), listed.exitCode]).toEqual(['', 0])
  expect(listed.stdout.toString()).toMatch(/^drwxr-xr-x .* sub\/\n-rw-r--r-- .* 7 .* sub\/f\n$/)
  const back = `tar -C "$TREE" -c . | curl -sSf -T - -H @<(echo "authorization: $AUTH") "$URL/workspace/archive?path=copy"`
  mkdirSync(at('copy'))
  const put = Bun.spawnSync(['bash', '-c', back], { env: { ...env, TREE: at('tree') } })
  expect(JSON.parse(put.stdout.toString())).toEqual({ entries: 2, bytes: 7, refused: [], refusedMore: 0 })
  expect(readFileSync(at('copy/sub/f'), 'utf8')).toBe('content')
})

test('refuses to pack a missing path or a file before the response starts', async () => {
  writeFileSync(at('file'), '')
  expect(await ask('GET', '/workspace/archive?path=file')).toMatchObject([
    400,
    { error: { code: 'not_a_folder' } },
  ])
  expect(await ask('GET', '/workspace/archive?path=none')).toMatchObject([
    404,
    { error: { code: 'file_not_found' } },
  ])
  expect(await ask('GET', '/workspace/archive?path=../')).toMatchObject([
    400,
    { error: { code: 'path_refused' } },
  ])
  expect(await ask('PUT', '/workspace/archive?path=none', 'x')).toMatchObject([404, {}])
  expect(await ask('PUT', '/workspace/archive?path=.', 'x'.repeat(512))).toMatchObject([
    400,
    { error: { code: 'bad_request', message: 'Cannot read the archive: a header is damaged' } },
  ])
  expect(await ask('PUT', '/workspace/archive?path=.')).toMatchObject([
    400,
    { error: { code: 'bad_request' } },
  ])
})

test('breaks off the response when a file is truncated', async () => {
  mkdirSync(at('tree'))
  writeFileSync(at('tree/large'), Buffer.alloc(50_000_000))
  const answer = await sandboxd.fetch('/workspace/archive?path=tree')
  const reader = new TarReader()
  let isComplete = false
  const read = async (): Promise<void> => {
    for await (const chunk of answer.body ?? []) {
      truncateSync(at('tree/large'), 0)
      for (const event of reader.push(chunk)) isComplete ||= event.kind === 'complete'
    }
    reader.end()
  }
  expect(
    await read().then(
      () => 'complete',
      () => 'broken',
    ),
  ).toBe('broken')
  expect(isComplete).toBe(false)
})

/** Files of the workspace that sandboxd has open. */
function openFiles(): readonly string[] {
  return readdirSync(`/proc/${sandboxd.pid}/fd`).flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/${sandboxd.pid}/fd/${fd}`)
      return target.startsWith(`${sandboxd.workspace}/`) ? [target] : []
    } catch {
      // Closed since it was listed.
      return []
    }
  })
}

test('a client that disconnects leaves nothing open or incomplete', async () => {
  mkdirSync(at('tree'))
  writeFileSync(at('tree/large'), Buffer.alloc(50_000_000))
  for (let round = 0; round < 10; round += 1) {
    const answer = await sandboxd.fetch('/workspace/archive?path=tree')
    const reader = answer.body?.getReader()
    await reader?.read()
    await reader?.cancel()
    const leaving = new AbortController()
    const begun = new TarBuffer()
    begun.entry({
      path: 'f',
      kind: 'file',
      mode: 0o644,
      mtimeNs: '0',
      sizeBytes: 10_000_000,
    })
    const archive = begun.take()
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(archive)
        controller.enqueue(new Uint8Array(1_000_000))
      },
    })
    const put = sandboxd.fetch('/workspace/archive?path=.', { method: 'PUT', body, signal: leaving.signal })
    await eventually(() => openFiles().some((file) => file.endsWith('.part')), { what: 'the file to begin' })
    leaving.abort()
    expect(
      await put.then(
        () => 'answered',
        () => 'left',
      ),
    ).toBe('left')
  }
  await eventually(() => openFiles().length === 0, { what: 'all files to be closed' })
  expect(readdirSync(sandboxd.workspace)).toEqual(['tree'])
})

test('uploads a file in pieces', async () => {
  const upload = `/workspace/uploads/${ID}?path=f`
  expect(await ask('GET', upload)).toEqual([200, { received: 0 }])
  expect(await ask('PUT', `${upload}&offset=0`, 'hello ')).toEqual([200, { received: 6 }])
  expect(await ask('PUT', `${upload}&offset=0`, 'hello ')).toMatchObject([
    409,
    {
      error: { code: 'conflict', message: 'Cannot append to the upload: 6 bytes have been received' },
      received: 6,
    },
  ])
  expect(await ask('PUT', `${upload}&offset=6`, 'world')).toEqual([200, { received: 11 }])
  const body = JSON.stringify({ path: 'f', size: 11, mode: 0o751, mtimeMs: 1_600_000_000_123.5 })
  const finished = await ask('POST', `/workspace/uploads/${ID}`, body)
  expect(finished).toMatchObject([200, { path: 'f', size: 11 }])
  expect(await ask('POST', `/workspace/uploads/${ID}`, body)).toEqual(finished)
  expect(readFileSync(at('f'), 'utf8')).toBe('hello world')
  const stat = statSync(at('f'), { bigint: true })
  expect([Number(stat.mode) & 0o7777, stat.mtimeNs]).toEqual([0o751, 1_600_000_000_123_500_000n])
  expect(await ask('DELETE', upload)).toEqual([200, { dropped: false }])
})

test('refuses an invalid upload and names the cause', async () => {
  for (const id of ['x', 'A'.repeat(32), `${ID}0`, `${ID}%2f..`])
    expect(await ask('GET', `/workspace/uploads/${id}?path=f`)).toMatchObject([
      400,
      { error: { code: 'bad_request', message: 'Cannot use the upload: its id must be 32 hex digits' } },
    ])
  expect(await ask('PUT', `/workspace/uploads/${ID}?path=f&offset=-1`, 'x')).toMatchObject([400, {}])
  expect(await ask('PUT', `/workspace/uploads/${ID}?offset=0`, 'x')).toMatchObject([400, {}])
  const bodies = [
    '{}',
    '[]',
    'x',
    JSON.stringify({ path: 'f', size: 1, more: 1 }),
    JSON.stringify({ path: 'f', size: -1 }),
  ]
  for (const body of bodies)
    expect(await ask('POST', `/workspace/uploads/${ID}`, body)).toMatchObject([
      400,
      { error: { code: 'bad_request' } },
    ])
  expect(await ask('POST', `/workspace/uploads/${ID}`, JSON.stringify({ path: 'f', size: 1 }))).toMatchObject(
    [404, {}],
  )
  expect(readdirSync(sandboxd.workspace)).toEqual([])
})

test.if(process.getuid?.() === 0)(
  'refuses to pack an unreadable folder before the response starts',
  async () => {
    const workspace = mkdtempSync(join(tmpdir(), 'closed-'))
    mkdirSync(join(workspace, 'closed'), { mode: 0o700 })
    chmodSync(workspace, 0o755)
    const args = ['--run-as', '65534:65534', '--shell', '/bin/sh']
    try {
      await using common = await startSandboxd({ workspace, args })
      const answer = await common.fetch('/workspace/archive?path=closed')
      expect([answer.status, await answer.json()]).toMatchObject([403, { error: { code: 'file_refused' } }])
    } finally {
      rmSync(workspace, { recursive: true })
    }
  },
)
