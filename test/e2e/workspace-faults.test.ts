import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { TarBuffer } from '@sandwire/tar'
import { eventually } from '@sandwire/testing'
import { readShell } from './support/attached.ts'
import { Deployment } from './support/deployment.ts'
import { openDownload, openUpload } from './support/raw-transfer.ts'

const MIB = 1024 ** 2
/** More than all buffers between client and sandboxd. */
const LARGE_BYTES = 64 * MIB
/** A few megabytes besides the file system's own overhead. */
const SMALL_DISK_BYTES = 24 * MIB

/** Only root can read sandboxd's descriptors and give a sandbox its own disk. */
const isRoot = process.getuid?.() === 0

let deployment: Deployment
beforeAll(async () => {
  deployment = await Deployment.open()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const run = (sandbox: string, script: string): Promise<string> =>
  readShell(deployment.sandbox(sandbox), script)

/** Every name in a workspace, including hidden ones. */
const namesIn = async (sandbox: string): Promise<string[]> =>
  (await run(sandbox, 'find . -mindepth 1 -not -path "./lost+found*"'))
    .split('\n')
    .filter((name) => name !== '')
    .toSorted()

async function codeOf(response: Response): Promise<string> {
  const { error } = Object(await response.json())
  return `${response.status} ${String(Object(error).code)}`
}

/** Unnamed files that sandboxd is writing. */
function writtenBy(id: string): string[] {
  const listing = Bun.spawnSync(['ls', '-l', `/proc/${deployment.sandboxd(id)}/fd`]).stdout.toString()
  return listing.split('\n').filter((line) => line.includes('/#'))
}

/** Creates a sandbox with a large file. */
async function makeBox(name: string): Promise<string> {
  const { id } = await deployment.create(name)
  await run(name, `truncate -s ${LARGE_BYTES} large`)
  return id
}

/** Starts an upload and returns when some of it was received. */
async function beginUpload(sandbox: string, id: string, path: string) {
  const upload = await openUpload(deployment.host, `/api/workspaces/${sandbox}/${path}`, new Uint8Array(MIB))
  await eventually(() => writtenBy(id).length > 0, { what: 'the file to be written' })
  return upload
}

describe('a file in transfer', () => {
  const FILE = '/api/workspaces/changed/file?path=large'
  beforeAll(async () => {
    await makeBox('changed')
  })

  test.each([
    ['shrinks', 'truncate -s 1000 large'],
    ['grows', 'printf x >> large'],
    ['is overwritten in place', 'printf x | dd of=large conv=notrunc status=none'],
  ])('breaks off when it %s: two contents are never one file', async (_, script) => {
    const download = await openDownload(deployment.host, FILE)
    expect([download.status, download.length]).toEqual([200, LARGE_BYTES])
    await run('changed', script)
    expect(await download.rest()).toBeLessThan(LARGE_BYTES)
    await run('changed', `rm large; truncate -s ${LARGE_BYTES} large`)
  })

  test('arrives whole when another file replaces it', async () => {
    const download = await openDownload(deployment.host, FILE)
    await run('changed', 'echo other > other; mv other large')
    expect(await download.rest()).toBe(LARGE_BYTES)
  })

  test.if(isRoot).each([
    ['sandboxd dies', (_: string, id: string) => void process.kill(deployment.sandboxd(id), 'SIGKILL')],
    [
      'the sandbox is stopped',
      async (name: string) =>
        void (await deployment.fetch(`/api/sandboxes/${name}/stop`, { method: 'POST' })),
    ],
  ] as const)('breaks off when %s, and a partial upload leaves nothing', async (how, harm) => {
    const name = how.endsWith('dies') ? 'killed' : 'stopped'
    const id = await makeBox(name)
    const w = `/api/workspaces/${name}`
    const download = await openDownload(deployment.host, `${w}/file?path=large`)
    const upload = await beginUpload(name, id, 'file?path=sent')
    await harm(name, id)
    expect(await download.rest()).toBeLessThan(LARGE_BYTES)
    const answer = await upload.answer()
    expect(answer === '' || /^HTTP\/1\.1 (409|502|503) /.test(answer)).toBe(true)
    const codes = /^(409 sandbox_stopped|502 sandbox_\w+|503 workspace_unavailable)$/
    const refused = await deployment.fetch(`${w}/stat?path=large`)
    expect(await codeOf(refused)).toMatch(codes)
    await eventually(
      async () => (await deployment.fetch(`/api/sandboxes/${name}/start`, { method: 'POST' })).status === 200,
      { what: 'it to be started again' },
    )
    expect(await namesIn(name)).toEqual(['./large'])
    await eventually(async () => (await deployment.fetch(`${w}/stat?path=large`)).status === 200, {
      what: 'files to be there again',
    })
    await deployment.destroy(name)
  })

  test.if(isRoot)('leaves nothing when its sender goes away', async () => {
    const id = await makeBox('left')
    for (const path of ['file?path=sent', 'file?path=made/sent&parents=1']) {
      const upload = await beginUpload('left', id, path)
      upload.cut()
      await eventually(() => writtenBy(id).length === 0, { what: 'it to be dropped' })
    }
    // The folder was created before the first byte; the file was not.
    expect(await namesIn('left')).toEqual(['./large', './made'])
    await deployment.destroy('left')
  })
})

describe.if(isRoot)('a full disk', () => {
  const W = '/api/workspaces/full'
  const large = new Uint8Array(2 * SMALL_DISK_BYTES)
  const UPLOAD = `uploads/${'0f'.repeat(16)}`
  const free = (): Promise<string> => run('full', 'sync; df --output=avail,iavail . | tail -1')
  beforeAll(async () => {
    await deployment.create('full', { limits: { diskBytes: SMALL_DISK_BYTES } })
    // The remaining space is smaller than any file below.
    await run('full', `echo kept > kept; head -c ${SMALL_DISK_BYTES / 2} /dev/urandom > half; sync`)
  })
  const send = (method: string, path: string, body: BodyInit): Promise<Response> =>
    deployment.fetch(path, {
      method,
      body,
      ...(typeof body === 'string' ? { headers: { 'content-type': 'application/json' } } : {}),
    })

  test.each([
    ['a new file', 'PUT', `${W}/file?path=new`, large],
    ['a file in the place of another', 'PUT', `${W}/file?path=kept`, large],
    ['a copy', 'POST', `${W}/copy`, '{"from":"half","to":"twice"}'],
    ['an archive', 'PUT', `${W}/archive?path=.`, 'tar'],
  ] as const)('refuses %s and leaves nothing behind', async (_, method, path, body) => {
    const [names, room] = [await namesIn('full'), await free()]
    const response = await send(method, path, body === 'tar' ? makeTar('packed', large) : body)
    expect(await codeOf(response)).toBe('507 disk_full')
    expect(await namesIn('full')).toEqual(names)
    expect(await run('full', 'cat kept')).toBe('kept\n')
    await eventually(async () => (await free()) === room, { what: 'its room to be free again' })
  })

  test('refuses a text of the compat API with its error format', async () => {
    await run('full', 'cp half half2 2>/dev/null; sync')
    const names = await namesIn('full')
    const body = JSON.stringify({ content: 'x'.repeat(7 * MIB) })
    const response = await send('PUT', '/api/file?path=text&sandbox=full', body)
    expect([response.status, await response.json()]).toEqual([
      500,
      { detail: expect.stringMatching(/^Write failed: .*space/) },
    ])
    expect(await namesIn('full')).toEqual(names)
    await run('full', 'rm -f half2')
  })

  test('keeps the received part of an upload until it is discarded', async () => {
    const [names, room] = [await namesIn('full'), await free()]
    const piece = await send('PUT', `${W}/${UPLOAD}?path=sent&offset=0`, large)
    expect(await codeOf(piece)).toBe('507 disk_full')
    const { received } = Object(await (await deployment.fetch(`${W}/${UPLOAD}?path=sent`)).json())
    expect(received).toBeLessThan(SMALL_DISK_BYTES)
    const finish = await send('POST', `${W}/${UPLOAD}`, `{"path":"sent","size":${large.byteLength}}`)
    expect(finish.status).toBe(409)
    expect((await deployment.fetch(`${W}/${UPLOAD}?path=sent`, { method: 'DELETE' })).status).toBe(200)
    expect(await namesIn('full')).toEqual(names)
    await eventually(async () => (await free()) === room, { what: 'its room to be free again' })
  })

  test('accepts a file that fits again', async () => {
    expect((await send('PUT', `${W}/file?path=fits`, new Uint8Array(MIB))).status).toBe(200)
    expect(await run('full', 'wc -c < fits')).toBe(`${MIB}\n`)
  })
})

/** An archive of one file. */
function makeTar(path: string, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const archive = new TarBuffer()
  archive.entry({ path, kind: 'file', sizeBytes: bytes.byteLength, mode: 0o644, mtimeNs: '0' })
  archive.content(bytes)
  archive.end()
  return archive.take()
}
