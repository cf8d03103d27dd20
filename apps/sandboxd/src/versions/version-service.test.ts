import { Database } from 'bun:sqlite'
import { rejectionOf } from '@sandwire/testing'
import { afterEach, describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ByteWriter, type SegmentId } from '@sandwire/version-format'
import { WorkerClient } from '../workspace/thread/worker-client.ts'
import type { SaveSummary, VersionThread } from './messages.ts'
import { pauseProcesses } from './pause-processes.ts'
import { VERSION_ROUTES } from './version-routes.ts'
import { VersionService } from './version-service.ts'

interface Stored {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly trailerBytes: number
  readonly sha256: string
}

const opened: Disposable[] = []
afterEach(() => {
  for (const each of opened.splice(0)) each[Symbol.dispose]()
})

/** sandboxd's routes over a real thread, and what control would store. */
class Sandbox implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'sandwire-save-'))
  readonly workspace = join(this.folder, 'workspace')
  readonly store: Map<SegmentId, Stored>
  readonly #thread: WorkerClient<VersionThread>
  readonly #service: VersionService
  #saves = 0

  constructor(store = new Map<SegmentId, Stored>(), user?: { readonly uid: number; readonly gid: number }) {
    mkdirSync(this.workspace)
    if (user !== undefined) {
      chmodSync(this.folder, 0o755)
      chownSync(this.workspace, user.uid, user.gid)
    }
    this.store = store
    const paused = new SharedArrayBuffer(4)
    this.#thread = new WorkerClient({
      createWorker: () => new Worker(new URL('./version-worker.ts', import.meta.url).href),
      setUp: { roots: [{ name: 'workspace', path: this.workspace }], user, paused },
      task: 'save files',
    })
    this.#service = new VersionService({
      thread: this.#thread,
      paused: new Int32Array(paused),
      pause: pauseProcesses,
      wallClock: Date.now,
      sleep: (ms) => Bun.sleep(ms),
      later: (ms, action) => {
        const timer = setTimeout(action, ms)
        return () => clearTimeout(timer)
      },
    })
    opened.push(this)
  }

  call(
    method: string,
    path: string,
    body?: BodyInit,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const [route = ''] = path.split('?')
    const pattern = route.replace(/(segments|saves|restore|adopt)\/[0-9a-f]+$/, '$1/:id')
    const handle = VERSION_ROUTES[pattern]?.[method]
    if (handle === undefined) throw new Error(`No route ${method} ${pattern}`)
    const url = new URL(`http://localhost${path}`)
    const request = new Request(url, { method, headers, ...(body === undefined ? {} : { body }) })
    return handle({ request, url, id: path.split('/').at(-1) ?? '' }, this.#service)
  }

  /** Saves as control does; returns the id of the save and what it found. */
  async save(
    options: { readonly parent?: string; readonly commits?: boolean; readonly kind?: string } = {},
  ): Promise<SaveSummary & { readonly save: string }> {
    this.#saves += 1
    const save = (Date.now() * 1000 + this.#saves).toString(16).padStart(28, '0')
    const { commits = true, parent, kind = 'checkpoint' } = options
    const body = {
      save,
      kind,
      record: '{}',
      isBase: false,
      isFullScan: false,
      isRecorded: false,
      replaced: [],
    }
    await this.call(
      'POST',
      '/versions/saves',
      JSON.stringify({ ...body, ...(parent === undefined ? {} : { parent }) }),
    )
    for (let number = 0; ; number += 1) {
      const id = save + number.toString(16).padStart(4, '0')
      const response = await this.call('GET', `/versions/segments/${id}`)
      if (response.status === 204) break
      this.store.set(id, {
        bytes: await response.bytes(),
        trailerBytes: Number(response.headers.get('sandwire-trailer-bytes')),
        sha256: response.headers.get('sandwire-sha256') ?? '',
      })
    }
    const summary = (await (await this.call('GET', `/versions/saves/${save}`)).json()) as SaveSummary
    if (commits && summary.isChanged) await this.call('POST', `/versions/saves/${save}`)
    return { ...summary, save }
  }

  /** Processes have ended; resolves when sandboxd may end. */
  awaitLastSave(timeoutMs: number): Promise<void> {
    return this.#service.awaitLastSave(timeoutMs)
  }

  /** Ends the thread; the next request starts a new one, as a new sandboxd has. */
  restart(): void {
    this.#thread.stop()
  }

  /** Has a new sandboxd start from a version, as control does. */
  async adopt(manifests: readonly string[], saved: SaveSummary & { readonly save: string }): Promise<void> {
    await this.call('POST', `/versions/adopt/${saved.save}`, this.#ends(manifests, saved.segments))
  }

  /** Restores as control does, with the manifests first. */
  async restore(
    manifests: readonly string[],
    { segments, save }: SaveSummary & { readonly save: string },
  ): Promise<void> {
    const begun = await this.call('POST', '/versions/restore', this.#ends(manifests, segments))
    const { needed } = (await begun.json()) as { needed: SegmentId[] }
    for (const id of needed) {
      const stored = this.store.get(id)
      if (stored === undefined) throw new Error(`Segment ${id} is missing`)
      await this.call('PUT', `/versions/segments/${id}`, stored.bytes, { 'sandwire-sha256': stored.sha256 })
    }
    await this.call('POST', `/versions/restore/${save}`)
  }

  #ends(manifests: readonly string[], segments: readonly SegmentId[]): Uint8Array<ArrayBuffer> {
    const lastOf = (each: string): SegmentId =>
      [...this.store.keys()].findLast((id) => id.startsWith(each)) ?? ''
    const ordered = [
      ...manifests.map(lastOf),
      ...segments.filter((id) => !manifests.map(lastOf).includes(id)),
    ]
    const writer = new ByteWriter()
    writer.number(manifests.length)
    for (const id of ordered) {
      const stored = this.store.get(id)
      if (stored === undefined) throw new Error(`Segment ${id} is missing`)
      writer.raw(Uint8Array.fromHex(id))
      writer.number(stored.bytes.byteLength)
      writer.bytes(stored.bytes.subarray(stored.bytes.byteLength - stored.trailerBytes))
    }
    return writer.take()
  }

  [Symbol.dispose](): void {
    this.#thread.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

const WRITER = `
import { Database } from 'bun:sqlite'
const [path, mode] = process.argv.slice(2)
const db = new Database(path)
db.exec('PRAGMA journal_mode = ' + mode)
db.exec('PRAGMA synchronous = OFF')
db.exec('CREATE TABLE IF NOT EXISTS pairs (id INTEGER PRIMARY KEY, a TEXT, b TEXT)')
const insert = db.prepare('INSERT INTO pairs (a, b) VALUES (?, ?)')
console.log('ready')
for (let n = 0; ; n += 1) {
  db.transaction(() => { for (let i = 0; i < 20; i += 1) { const text = 'x'.repeat(n % 500) + i; insert.run(text, text) } })()
  if (n % 50 === 0) db.exec('DELETE FROM pairs WHERE id % 3 = 0')
}
`

describe('saving', () => {
  test.each(['WAL', 'DELETE'])(
    'leaves a sound database in every version while it is written, with journal mode %s',
    async (mode) => {
      const sandbox = new Sandbox()
      const script = join(sandbox.folder, 'writer.ts')
      writeFileSync(script, WRITER)
      const path = join(sandbox.workspace, 'live.db')
      await using writer = Bun.spawn([process.execPath, script, path, mode], {
        stdout: 'pipe',
        stderr: 'ignore',
      })
      const reader = writer.stdout.getReader()
      await reader.read()
      const manifests: string[] = []
      for (let round = 0; round < 4; round += 1) {
        const saved = await sandbox.save(manifests.length === 0 ? {} : { parent: manifests.at(-1) ?? '' })
        expect(saved).toMatchObject({ isChanged: true, isFuzzy: false })
        manifests.push(saved.save)
        const target = new Sandbox(sandbox.store)
        await target.restore(manifests, saved)
        using restored = new Database(join(target.workspace, 'live.db'))
        expect(restored.query('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
        expect(restored.query('SELECT COUNT(*) AS n FROM pairs WHERE a <> b').get()).toEqual({ n: 0 })
      }
      writer.kill()
    },
  )

  test('is done once more before sandboxd ends', async () => {
    const sandbox = new Sandbox()
    writeFileSync(join(sandbox.workspace, 'a'), 'first')
    // Nothing saves this sandbox.
    await sandbox.awaitLastSave(0)
    const changes = async (): Promise<unknown> =>
      (await sandbox.call('GET', '/versions/changes?wait=0')).json()
    expect(await changes()).toMatchObject({ isEnding: false })
    const { save } = await sandbox.save()
    let hasEnded = false
    const ending = sandbox.awaitLastSave(60_000).then(() => {
      hasEnded = true
    })
    expect(await changes()).toMatchObject({ isEnding: true })
    writeFileSync(join(sandbox.workspace, 'a'), 'last')
    // Not committed: control may have failed.
    await sandbox.save({ parent: save, commits: false })
    await changes()
    expect(hasEnded).toBe(false)
    const last = await sandbox.save({ parent: save })
    expect(last.isChanged).toBe(true)
    expect(await changes()).toMatchObject({ isEnding: true, head: last.save })
    await ending
  })

  test('stores only what changed since the version that was restored', async () => {
    const first = new Sandbox()
    writeFileSync(join(first.workspace, 'a'), crypto.getRandomValues(new Uint8Array(300_000)))
    mkdirSync(join(first.workspace, 'folder'))
    const saved = await first.save()
    const second = new Sandbox(first.store)
    await second.restore([saved.save], saved)
    writeFileSync(join(second.workspace, 'folder/b'), 'new')
    const next = await second.save({ parent: saved.save })
    expect(next).toMatchObject({ isChanged: true, isBase: false })
    const added = [...first.store].filter(([id]) => id.startsWith(next.save))
    expect(added.reduce((sum, [, { bytes }]) => sum + bytes.byteLength, 0)).toBeLessThan(2000)
    const third = new Sandbox(first.store)
    await third.restore([saved.save, next.save], next)
    expect(readFileSync(join(third.workspace, 'folder/b'), 'utf8')).toBe('new')
    expect(readFileSync(join(third.workspace, 'a')).equals(readFileSync(join(first.workspace, 'a')))).toBe(
      true,
    )
  })

  test('finds what changed right after a restore, also when only the change time tells', async () => {
    const first = new Sandbox()
    const setTime = new Date('2026-01-01T00:00:00Z')
    mkdirSync(join(first.workspace, 'emptied'))
    for (const name of ['a', 'emptied/b']) {
      writeFileSync(join(first.workspace, name), 'one')
      utimesSync(join(first.workspace, name), setTime, setTime)
    }
    const saved = await first.save()
    const second = new Sandbox(first.store)
    await second.restore([saved.save], saved)
    writeFileSync(join(second.workspace, 'a'), 'two')
    utimesSync(join(second.workspace, 'a'), setTime, setTime)
    rmSync(join(second.workspace, 'emptied/b'))
    const next = await second.save({ parent: saved.save })
    const third = new Sandbox(first.store)
    await third.restore([saved.save, next.save], next)
    expect(readFileSync(join(third.workspace, 'a'), 'utf8')).toBe('two')
    expect(readdirSync(join(third.workspace, 'emptied'))).toEqual([])
  })

  test('stores only what changed when a new sandboxd starts from the newest version', async () => {
    const sandbox = new Sandbox()
    const content = crypto.getRandomValues(new Uint8Array(300_000))
    writeFileSync(join(sandbox.workspace, 'a'), content)
    writeFileSync(join(sandbox.workspace, 'b'), 'one')
    // A whole second, which can be set exactly.
    const setTime = new Date('2026-01-01T00:00:00Z')
    utimesSync(join(sandbox.workspace, 'b'), setTime, setTime)
    // Later than the ticks of file times.
    await Bun.sleep(30)
    const first = await sandbox.save()
    sandbox.restart()
    // The same size and time as before: only the change time tells.
    writeFileSync(join(sandbox.workspace, 'b'), 'two')
    utimesSync(join(sandbox.workspace, 'b'), setTime, setTime)
    await sandbox.adopt([first.save], first)
    const second = await sandbox.save({ parent: first.save })
    expect(second).toMatchObject({ isChanged: true, isBase: false })
    const added = [...sandbox.store].filter(([id]) => id.startsWith(second.save))
    expect(added.reduce((sum, [, { bytes }]) => sum + bytes.byteLength, 0)).toBeLessThan(2000)
    const target = new Sandbox(sandbox.store)
    await target.restore([first.save, second.save], second)
    expect(readFileSync(join(target.workspace, 'b'), 'utf8')).toBe('two')
    expect(readFileSync(join(target.workspace, 'a')).equals(content)).toBe(true)
  })

  test('takes up a commit whose confirmation was lost, and gives up a save that was not committed', async () => {
    const sandbox = new Sandbox()
    writeFileSync(join(sandbox.workspace, 'a'), 'a')
    const first = await sandbox.save({ commits: false })
    writeFileSync(join(sandbox.workspace, 'b'), 'b')
    const second = await sandbox.save({ parent: first.save, commits: false })
    expect(second.isBase).toBe(false)
    const third = await sandbox.save({ parent: first.save })
    expect(third).toMatchObject({ isChanged: true, isBase: false })
  })

  test('stores everything when control is at another version', async () => {
    const sandbox = new Sandbox()
    writeFileSync(join(sandbox.workspace, 'a'), 'a')
    await sandbox.save()
    expect(await sandbox.save({ parent: '0'.repeat(28) })).toMatchObject({ isBase: true, isChanged: true })
  })

  test('reports changes by inotify, and then scans the changed folders only', async () => {
    const sandbox = new Sandbox()
    mkdirSync(join(sandbox.workspace, 'a/b'), { recursive: true })
    const first = await sandbox.save()
    const changes = async (query = ''): Promise<number | null> => {
      const response = await sandbox.call('GET', `/versions/changes${query}`)
      return ((await response.json()) as { changes: number | null }).changes
    }
    const before = await changes()
    expect(await changes()).toBe(before)
    const waiting = changes(`?known=${before}&wait=30`)
    writeFileSync(join(sandbox.workspace, 'a/b/c'), 'c')
    expect(await waiting).toBeGreaterThan(before ?? 0)
    const second = await sandbox.save({ parent: first.save })
    expect(second).toMatchObject({ isChanged: true, isBase: false })
    expect(await sandbox.save({ parent: second.save })).toMatchObject({ isChanged: false })
  })

  test('numbers hard links anew on the disk to which they were restored', async () => {
    const first = new Sandbox()
    writeFileSync(join(first.workspace, 'a'), 'linked')
    linkSync(join(first.workspace, 'a'), join(first.workspace, 'b'))
    const saved = await first.save()
    const second = new Sandbox(first.store)
    await second.restore([saved.save], saved)
    // Else a file that is made later could get the number of the first disk.
    const next = await second.save({ parent: saved.save })
    expect(next).toMatchObject({ isChanged: true, isBase: false })
    expect(await second.save({ parent: next.save })).toMatchObject({ isChanged: false })
    const third = new Sandbox(first.store)
    await third.restore([saved.save, next.save], next)
    const [a, b] = ['a', 'b'].map((name) => statSync(join(third.workspace, name)).ino)
    expect(a).toBe(b)
  })

  test.skipIf(process.getuid?.() !== 0)(
    'reads files that their owner closed, and names those of other users',
    async () => {
      const user = { uid: 65_534, gid: 65_534 }
      const sandbox = new Sandbox(undefined, user)
      const at = (name: string): string => join(sandbox.workspace, name)
      writeFileSync(at('closed'), 'closed', { mode: 0o000 })
      mkdirSync(at('folder'))
      writeFileSync(at('folder/inside'), 'inside', { mode: 0o000 })
      for (const name of ['closed', 'folder', 'folder/inside']) chownSync(at(name), user.uid, user.gid)
      chmodSync(at('folder'), 0o000)
      writeFileSync(at('of root'), 'secret', { mode: 0o600 })
      const saved = await sandbox.save()
      expect(saved).toMatchObject({ unreadable: ['workspace/of root'], unreadableCount: 1 })
      expect(statSync(at('closed')).mode & 0o777).toBe(0)
      const target = new Sandbox(sandbox.store, user)
      await target.restore([saved.save], saved)
      expect(readFileSync(join(target.workspace, 'closed'), 'utf8')).toBe('closed')
      expect(readFileSync(join(target.workspace, 'folder/inside'), 'utf8')).toBe('inside')
      expect(statSync(join(target.workspace, 'folder')).mode & 0o777).toBe(0)
      expect(existsSync(join(target.workspace, 'of root'))).toBe(false)
      // A closed folder is replaced too.
      await target.restore([saved.save], saved)
      expect(readFileSync(join(target.workspace, 'folder/inside'), 'utf8')).toBe('inside')
    },
  )

  test.skipIf(process.getuid?.() !== 0)(
    'reports that the disk is full, at the restore of a version',
    async () => {
      const sandbox = new Sandbox()
      writeFileSync(join(sandbox.workspace, 'large'), crypto.getRandomValues(new Uint8Array(65_536)))
      for (let part = 0; part < 50; part += 1)
        appendFileSync(join(sandbox.workspace, 'large'), crypto.getRandomValues(new Uint8Array(65_536)))
      const saved = await sandbox.save()
      const target = new Sandbox(sandbox.store)
      const options = ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', target.workspace]
      expect(Bun.spawnSync(['mount', ...options]).exitCode).toBe(0)
      try {
        expect(await rejectionOf(target.restore([saved.save], saved))).toMatchObject({ code: 'disk_full' })
      } finally {
        Bun.spawnSync(['umount', '-l', target.workspace])
      }
    },
  )

  test('refuses a segment with a wrong checksum', async () => {
    const sandbox = new Sandbox()
    const put = sandbox.call('PUT', `/versions/segments/${'0'.repeat(32)}`, 'x', {
      'sandwire-sha256': '0'.repeat(64),
    })
    await put.then(
      () => expect.unreachable(),
      (error: unknown) => expect(error).toMatchObject({ code: 'version_damaged' }),
    )
  })
})
