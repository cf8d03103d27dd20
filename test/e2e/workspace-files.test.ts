import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually, openRawTcp } from '@sandwire/testing'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** The user `nobody` of Debian. */
const UID = 65_534
const isRoot = process.getuid?.() === 0

let sandboxd: RunningSandboxd

beforeAll(async () => {
  sandboxd = await startSandboxd()
})
afterAll(() => sandboxd.stop())

beforeEach(() => {
  for (const name of readdirSync(sandboxd.workspace))
    rmSync(join(sandboxd.workspace, name), { recursive: true })
})

const at = (name: string): string => join(sandboxd.workspace, name)

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

async function ask(path: string, init?: RequestInit): Promise<Answer> {
  const response = await sandboxd.fetch(path, init)
  const text = await response.text()
  return { status: response.status, body: JSON.parse(text) as Record<string, unknown> }
}

const post = (path: string, body: unknown): Promise<Answer> =>
  ask(path, { method: 'POST', body: JSON.stringify(body) })

function codeOf({ body }: Answer): unknown {
  return (body['error'] as { code: string } | undefined)?.code
}

describe('files', () => {
  test('are read back unchanged, with mode and time', async () => {
    const bytes = crypto.getRandomValues(new Uint8Array(60_000))
    const put = await ask('/workspace/file?path=a/b%FF.bin&parents=1&mode=488&mtimeMs=1234567890123', {
      method: 'PUT',
      body: bytes,
    })
    expect(put).toMatchObject({ status: 200, body: { path: 'a/b\udcff.bin', size: 60_000 } })
    const got = await sandboxd.fetch('/workspace/file?path=a/b%FF.bin')
    expect(new Uint8Array(await got.arrayBuffer())).toEqual(bytes)
    expect(got.headers.get('etag')).toBe(`"${String(put.body['etag'])}"`)
    expect(got.headers.get('x-content-type-options')).toBe('nosniff')
    const { body } = await ask('/workspace/stat?path=a/b%FF.bin')
    expect(body).toEqual({
      path: 'a/b\udcff.bin',
      kind: 'file',
      size: 60_000,
      mode: 0o750,
      mtimeMs: 1_234_567_890_123,
      etag: put.body['etag'],
    })
    expect((await ask('/workspace/tree?path=a')).body).toMatchObject({
      path: 'a',
      entries: [{ name: 'b\udcff.bin', kind: 'file' }],
      truncated: false,
    })
  })

  test('support ranges of the same version only', async () => {
    writeFileSync(at('f'), '0123456789')
    const get = async (
      headers: Record<string, string>,
      method = 'GET',
    ): Promise<[number, string, string | null]> => {
      const response = await sandboxd.fetch('/workspace/file?path=f', { method, headers })
      return [response.status, await response.text(), response.headers.get('content-range')]
    }
    const etag =
      (await sandboxd.fetch('/workspace/file?path=f', { method: 'HEAD' })).headers.get('etag') ?? ''
    expect(await get({ range: 'bytes=2-4' })).toEqual([206, '234', 'bytes 2-4/10'])
    expect(await get({ range: 'bytes=8-' })).toEqual([206, '89', 'bytes 8-9/10'])
    expect(await get({ range: 'bytes=-3' })).toEqual([206, '789', 'bytes 7-9/10'])
    expect(await get({ range: 'bytes=2-4,6-7' })).toEqual([200, '0123456789', null])
    expect(await get({ range: 'bytes=4-2' })).toEqual([200, '0123456789', null])
    expect((await get({ range: 'bytes=10-' })).filter((_, index) => index !== 1)).toEqual([416, 'bytes */10'])
    expect(await get({ range: 'bytes=2-4', 'if-range': etag })).toEqual([206, '234', 'bytes 2-4/10'])
    expect(await get({ range: 'bytes=2-4', 'if-range': '"other"' })).toEqual([200, '0123456789', null])
    expect(await get({ 'if-none-match': `"x", ${etag}` })).toEqual([304, '', null])
    expect(await get({ range: 'bytes=2-4' }, 'HEAD')).toEqual([206, '', 'bytes 2-4/10'])
  })

  test('report the current state when a precondition fails', async () => {
    writeFileSync(at('f'), 'mine')
    const { body: first } = await ask('/workspace/stat?path=f')
    writeFileSync(at('f'), 'theirs')
    const { body: current } = await ask('/workspace/stat?path=f')
    const headers = { 'if-match': `"${String(first['etag'])}"` }
    for (const init of [
      { method: 'PUT', headers, body: 'lost' },
      { method: 'DELETE', headers },
    ]) {
      const { status, body } = await ask('/workspace/file?path=f', init)
      const { etag, size, mtimeMs } = current
      expect([status, body]).toMatchObject([
        412,
        { error: { code: 'file_changed', current: { etag, size, mtimeMs } } },
      ])
    }
    const absent = await ask('/workspace/file?path=f', {
      method: 'PUT',
      headers: { 'if-none-match': '*' },
      body: 'x',
    })
    expect(absent.status).toBe(412)
    expect(readFileSync(at('f'), 'utf8')).toBe('theirs')
    const match = { 'if-match': `"${String(current['etag'])}"` }
    expect(
      (await ask('/workspace/file?path=f', { method: 'PUT', headers: match, body: 'mine' })).status,
    ).toBe(200)
  })

  test('are created, moved, copied and removed', async () => {
    expect((await post('/workspace/mkdir', { path: 'a/b', parents: true })).status).toBe(200)
    writeFileSync(at('a/f'), 'x')
    expect((await post('/workspace/rename', { from: 'a/f', to: 'a/b/g' })).status).toBe(200)
    expect((await post('/workspace/copy', { from: 'a', to: 'c' })).body).toEqual({
      from: 'a',
      to: 'c',
      left: 0,
    })
    expect(codeOf(await post('/workspace/copy', { from: 'a', to: 'c' }))).toBe('file_exists')
    expect(codeOf(await ask('/workspace/file?path=a', { method: 'DELETE' }))).toBe('folder_not_empty')
    expect((await ask('/workspace/file?path=a&recursive=1', { method: 'DELETE' })).status).toBe(200)
    expect(readdirSync(at('c/b'))).toEqual(['g'])
  })

  test.each([
    ['GET', '/workspace/tree?path=..', 'path_refused'],
    ['GET', '/workspace/file?path=..%2f..%2fetc%2fpasswd', 'path_refused'],
    ['GET', '/workspace/file?path=%252e%252e/etc/passwd', 'file_not_found'],
    ['GET', '/workspace/file?path=a%00b', 'path_refused'],
    ['GET', '/workspace/file', 'bad_request'],
    ['GET', '/workspace/file?path=a&path=b', 'bad_request'],
    ['GET', '/workspace/file?path=a&mode=1', 'bad_request'],
    ['GET', '/workspace/file?path=.', 'is_a_folder'],
    ['PUT', '/workspace/file?path=a&mode=4095', 'bad_request'],
    ['PUT', '/workspace/file?path=/etc/x', 'path_refused'],
    ['DELETE', '/workspace/file?path=.&recursive=1', 'path_refused'],
  ])('(threat T12) %s %s is refused as %s', async (method, path, code) => {
    expect(codeOf(await ask(path, { method, ...(method === 'PUT' ? { body: 'x' } : {}) }))).toBe(code)
  })

  test('leave nothing behind when an upload is interrupted', async () => {
    const { socket } = await startPut('/workspace/file?path=f', 'content-length: 1000000')
    socket.close()
    const chunked = await startPut('/workspace/file?path=f', 'transfer-encoding: chunked')
    chunked.socket.close()
    await eventually(async () => (await openFilesOf(sandboxd.pid)).length === 0, {
      what: 'the uploads to be dropped',
    })
    expect(readdirSync(sandboxd.workspace)).toEqual([])
  })

  test('(threat T15) end with an error when they are truncated while they are read', async () => {
    writeFileSync(at('f'), Buffer.alloc(64 * 1024 * 1024))
    const response = await sandboxd.fetch('/workspace/file?path=f')
    truncateSync(at('f'), 1000)
    let error: unknown
    await response.arrayBuffer().catch((caught: unknown) => (error = caught))
    expect(error).toBeDefined()
  })
})

/** Starts an upload and returns when the file is being written. */
async function startPut(path: string, length: string): Promise<{ socket: { close: () => void } }> {
  const socket = await openRawTcp({ port: sandboxd.port })
  const head = [
    `PUT ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${sandboxd.port}`,
    `Authorization: ${sandboxd.headers.authorization}`,
    length,
  ]
  const body = length.startsWith('transfer') ? '5\r\nhello\r\n' : 'hello'
  await socket.write(Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`))
  await eventually(async () => (await openFilesOf(sandboxd.pid)).length > 0, {
    what: 'the file to be written',
  })
  return { socket }
}

/** Unnamed files that a process has open in the workspace. */
async function openFilesOf(pid: number): Promise<string[]> {
  const listing = Bun.spawnSync(['ls', '-l', `/proc/${pid}/fd`]).stdout.toString()
  return listing.split('\n').filter((line) => line.includes(`${sandboxd.workspace}/#`))
}

describe('the compat API', () => {
  const compat = async (path: string, init?: RequestInit): Promise<[number, string]> => {
    const response = await sandboxd.fetch(`/workspace/compat${path}`, init)
    return [response.status, await response.text()]
  }
  const send = (path: string, body: unknown, method = 'POST'): Promise<[number, string]> =>
    compat(path, { method, body: JSON.stringify(body) })

  beforeEach(() => {
    writeFileSync(at('README.md'), '# Test')
    writeFileSync(at('empty.txt'), '')
    mkdirSync(at('src'))
    writeFileSync(at('src/main.py'), 'print()')
  })

  test('lists one level, folders first, then by lower-cased name', async () => {
    mkdirSync(at('Docs'))
    symlinkSync('src', at('a-link'))
    symlinkSync('README.md', at('b-link'))
    symlinkSync('nothing', at('c-link'))
    expect(await compat('/tree')).toEqual([
      200,
      '{"entries":[{"name":"a-link","path":"a-link","is_dir":true},{"name":"Docs","path":"Docs","is_dir":true},{"name":"src","path":"src","is_dir":true},{"name":"b-link","path":"b-link","is_dir":false,"size":6},{"name":"c-link","path":"c-link","is_dir":false},{"name":"empty.txt","path":"empty.txt","is_dir":false,"size":0},{"name":"README.md","path":"README.md","is_dir":false,"size":6}],"path":"."}',
    ])
    expect(await compat('/tree?path=src')).toEqual([
      200,
      '{"entries":[{"name":"main.py","path":"src/main.py","is_dir":false,"size":7}],"path":"src"}',
    ])
  })

  test.each([
    ['/tree?path=missing', 200, '{"entries":[],"path":"missing"}'],
    ['/tree?path=README.md', 400, '{"detail":"Path is not a directory: README.md"}'],
    ['/tree?path=../etc', 400, '{"detail":"Path traversal detected: ../etc"}'],
    ['/file?path=README.md', 200, '{"content":"# Test","path":"README.md"}'],
    ['/file?path=empty.txt', 200, '{"content":"","path":"empty.txt"}'],
    ['/file?path=nope.txt', 404, '{"detail":"File not found: nope.txt"}'],
    ['/file?path=README.md/x', 404, '{"detail":"File not found: README.md/x"}'],
    ['/file?path=src', 400, '{"detail":"Path is a directory: src"}'],
    ['/file?path=../../etc/passwd', 400, '{"detail":"Path traversal detected: ../../etc/passwd"}'],
    [
      '/file',
      422,
      '{"detail":[{"type":"missing","loc":["query","path"],"msg":"Field required","input":null}]}',
    ],
  ])('responds to GET %s', async (path, status, body) => {
    expect(await compat(path)).toEqual([status, body])
  })

  test('refuses binary and huge files', async () => {
    writeFileSync(at('binary'), Uint8Array.of(0x66, 0xff))
    writeFileSync(at('nul'), 'a\0b')
    writeFileSync(at('huge'), '')
    truncateSync(at('huge'), 9 * 1024 * 1024)
    expect(await compat('/file?path=binary')).toEqual([415, '{"detail":"File is not text: binary"}'])
    expect(await compat('/file?path=nul')).toEqual([415, '{"detail":"File is not text: nul"}'])
    expect(await compat('/file?path=huge')).toEqual([
      413,
      '{"detail":"File is too large to show: huge (more than 8388608 bytes)"}',
    ])
  })

  test('writes texts unchanged and creates parent folders', async () => {
    const content = '\ufeffä\r\n🦜'
    expect(await send('/file?path=deep/nested/f.txt', { content }, 'PUT')).toEqual([
      200,
      '{"success":true,"path":"deep/nested/f.txt"}',
    ])
    expect(readFileSync(at('deep/nested/f.txt'), 'utf8')).toBe(content)
    expect(await compat('/file?path=deep/nested/f.txt')).toEqual([
      200,
      JSON.stringify({ content, path: 'deep/nested/f.txt' }),
    ])
    expect(await send('/file?path=../x', { content }, 'PUT')).toEqual([
      400,
      '{"detail":"Path traversal detected: ../x"}',
    ])
    expect(await send('/file?path=src', { content }, 'PUT')).toEqual([
      500,
      '{"detail":"Write failed: Cannot write \\"src\\": it is a folder"}',
    ])
    expect(await send('/file?path=f', {}, 'PUT')).toEqual([
      422,
      '{"detail":[{"type":"missing","loc":["body","content"],"msg":"Field required","input":{}}]}',
    ])
    expect(await send('/file?path=f', { content: 5 }, 'PUT')).toEqual([
      422,
      '{"detail":[{"type":"string_type","loc":["body","content"],"msg":"Input should be a valid string","input":5}]}',
    ])
  })

  test('removes, renames and moves', async () => {
    expect(await compat('/file?path=nope', { method: 'DELETE' })).toEqual([
      404,
      '{"detail":"File not found: nope"}',
    ])
    expect(await compat('/file?path=empty.txt', { method: 'DELETE' })).toEqual([
      200,
      '{"success":true,"path":"empty.txt"}',
    ])
    const rename = (old_path: string, new_path: string): Promise<[number, string]> =>
      send('/file/rename', { old_path, new_path })
    expect(await rename('README.md', 'R.md')).toEqual([
      200,
      '{"success":true,"old_path":"README.md","new_path":"R.md"}',
    ])
    expect(await rename('nope', 'x')).toEqual([404, '{"detail":"File not found: nope"}'])
    expect(await rename('R.md', 'src')).toEqual([409, '{"detail":"Target exists: src"}'])
    const move = (src_path: string, dest_dir: string): Promise<[number, string]> =>
      send('/file/move', { src_path, dest_dir })
    expect(await move('nope', 'src')).toEqual([404, '{"detail":"File not found: nope"}'])
    expect(await move('R.md', 'src/main.py')).toEqual([
      400,
      '{"detail":"Destination is not a directory: src/main.py"}',
    ])
    expect(await move('R.md', 'src')).toEqual([
      200,
      '{"success":true,"old_path":"R.md","dest_path":"src/R.md"}',
    ])
    writeFileSync(at('R.md'), '')
    expect(await move('R.md', 'src')).toEqual([409, '{"detail":"Target exists in destination: src"}'])
    expect(await compat('/file?path=src', { method: 'DELETE' })).toEqual([
      200,
      '{"success":true,"path":"src"}',
    ])
  })
})

describe('texts of the compat API', () => {
  test('have an etag and are not overwritten with a stale one', async () => {
    const route = '/workspace/compat/file?path=f'
    const put = (content: string, headers: Readonly<Record<string, string>>): Promise<Answer> =>
      ask(route, { method: 'PUT', headers, body: JSON.stringify({ content }) })
    expect(await put('mine', { 'if-none-match': '*' })).toMatchObject({ status: 200 })
    expect(await put('lost', { 'if-none-match': '*' })).toMatchObject({ status: 412 })
    const seen = (await sandboxd.fetch(route)).headers.get('etag') ?? ''
    expect(await put('theirs', { 'if-match': seen })).toMatchObject({ status: 200 })
    expect(await put('lost', { 'if-match': seen })).toEqual({
      status: 412,
      body: { detail: 'Cannot write "f": it has changed' },
    })
    const removed = await ask(route, { method: 'DELETE', headers: { 'if-match': seen } })
    expect([removed.status, readFileSync(at('f'), 'utf8')]).toEqual([412, 'theirs'])
  })
})

describe.if(isRoot)('files of another user', () => {
  test("are created and read with that user's rights", async () => {
    const workspace = mkdtempSync(join(tmpdir(), 'sandwire-files-as-'))
    chownSync(workspace, UID, UID)
    chmodSync(workspace, 0o700)
    await using other = await startSandboxd({
      workspace,
      args: ['--run-as', `${UID}:${UID}`, '--shell', '/bin/sh'],
    })
    writeFileSync(join(workspace, 'of-root'), 'secret', { mode: 0o600 })
    writeFileSync(join(workspace, 'of-group'), 'secret', { mode: 0o640 })
    mkdirSync(join(workspace, 'folder'), { mode: 0o700 })
    const status = async (path: string, init?: RequestInit): Promise<number> =>
      (await other.fetch(`/workspace/${path}`, init)).status
    expect(await status('file?path=a/f&parents=1', { method: 'PUT', body: 'x' })).toBe(200)
    expect(statSync(join(workspace, 'a/f'))).toMatchObject({ uid: UID, gid: UID })
    expect(statSync(join(workspace, 'a'))).toMatchObject({ uid: UID, gid: UID })
    expect(await status('file?path=of-root')).toBe(403)
    expect(await status('file?path=of-group')).toBe(403)
    expect(await status('tree?path=folder')).toBe(403)
    expect(await status('file?path=folder/f', { method: 'PUT', body: 'x' })).toBe(403)
    rmSync(workspace, { recursive: true })
  })

  test('leave nothing half-written on a full disk', async () => {
    const workspace = mkdtempSync(join(tmpdir(), 'sandwire-full-'))
    const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', workspace])
    // Even root may not mount everywhere.
    if (!mounted.success) return
    try {
      await using full = await startSandboxd({ workspace })
      const response = await full.fetch('/workspace/file?path=f', {
        method: 'PUT',
        body: Buffer.alloc(3_000_000),
      })
      expect([response.status, await response.json()]).toMatchObject([507, { error: { code: 'disk_full' } }])
      expect(readdirSync(workspace)).toEqual([])
      expect((await full.fetch('/workspace/file?path=f', { method: 'PUT', body: 'fits' })).status).toBe(200)
    } finally {
      Bun.spawnSync(['umount', '-l', workspace])
      rmSync(workspace, { recursive: true, force: true })
    }
  })
})
