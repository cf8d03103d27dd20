import {
  appendFileSync,
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually, rejectionOf } from '@sandwire/testing'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { SAME_USER } from '../../processes/run-as.ts'
import { FilesThread } from '../thread/files-thread.ts'
import type { Notice } from './change-notices.ts'
import { WATCH_LIMITS, type Watching, type WatchLimits, WatchService } from './watch-service.ts'

let root = ''
let files: FilesThread
let opened: Watching[] = []

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'watch-'))
  files = new FilesThread({
    createWorker: () => new Worker(new URL('../thread/files-worker.ts', import.meta.url).href),
    setUp: { root: join(root, 'w'), umask: 0o022, user: undefined },
  })
  mkdirSync(join(root, 'w'))
})

afterEach(() => {
  for (const watching of opened) watching.close()
  opened = []
  files.stop()
  rmSync(root, { recursive: true })
})

const at = (path: string): string => join(root, 'w', path)

function serve(limits: Partial<WatchLimits> = {}): WatchService {
  const { asUser } = SAME_USER
  return new WatchService({
    files,
    asUser,
    now: () => performance.now(),
    limits: { ...WATCH_LIMITS, ...limits },
  })
}

/** Notices collected so far. */
interface Collected {
  readonly notices: readonly Notice[]
  /** Paths with the abbreviated last change of each. */
  readonly paths: () => string[]
  readonly isOver: () => boolean
}

async function watch(path: string, isRecursive = true, service = serve()): Promise<Collected> {
  const watching = await service.open(path, isRecursive)
  opened.push(watching)
  const notices: Notice[] = []
  const changes = new Map<string, string>()
  let isOver = false
  void (async () => {
    for (let notice = await watching.next(); notice !== undefined; notice = await watching.next()) {
      notices.push(notice)
      if (notice.kind === 'change')
        for (const change of notice.changes) changes.set(change.path, change.kind.slice(0, 2))
    }
    isOver = true
  })()
  await eventually(() => notices.length > 0, { what: 'the watching to begin' })
  expect(notices[0]?.kind).toBe('ready')
  return {
    notices,
    paths: () => Array.from(changes, ([name, kind]) => `${kind} ${name}`).toSorted(),
    isOver: () => isOver,
  }
}

async function settles(collected: Collected, expected: readonly string[]): Promise<void> {
  await eventually(() => Bun.deepEquals(collected.paths(), expected.toSorted()), {
    what: 'the changes',
  }).catch(() => undefined)
  expect(collected.paths()).toEqual(expected.toSorted())
}

test('reports created, changed and removed paths', async () => {
  mkdirSync(at('a/b'), { recursive: true })
  writeFileSync(at('a/old'), '')
  writeFileSync(at('a/b/gone'), '')
  const collected = await watch('.')
  expect(collected.notices[0]).toEqual({ kind: 'ready', folders: 3 })
  writeFileSync(at('new\n\u001b'), 'x')
  writeFileSync(Buffer.concat([Buffer.from(at('a/')), Buffer.of(0xff)]), 'x')
  appendFileSync(at('a/old'), 'x')
  rmSync(at('a/b/gone'))
  await settles(collected, ['cr new\n\u001b', 'cr a/\udcff', 'ch a/old', 're a/b/gone'])
})

test('reports only the folder itself unless recursive', async () => {
  mkdirSync(at('a'))
  const collected = await watch('.', false)
  writeFileSync(at('a/inner'), '')
  mkdirSync(at('b'))
  writeFileSync(at('last'), '')
  await settles(collected, ['cr b', 'cr last'])
})

test('reports the contents of folders that are created full', async () => {
  const collected = await watch('.')
  const expected: string[] = []
  for (let count = 0; count < 40; count += 1) {
    mkdirSync(at(`d${count}/e/f`), { recursive: true })
    writeFileSync(at(`d${count}/e/f/x`), '')
    expected.push(`cr d${count}`, `cr d${count}/e`, `cr d${count}/e/f`, `cr d${count}/e/f/x`)
  }
  await settles(collected, expected)
  writeFileSync(at('d39/e/f/later'), '')
  await settles(collected, [...expected, 'cr d39/e/f/later'])
})

test('follows a renamed folder and drops one that leaves the workspace', async () => {
  mkdirSync(at('a/b'), { recursive: true })
  mkdirSync(at('c'))
  const collected = await watch('.')
  renameSync(at('a'), at('n'))
  renameSync(at('c'), join(root, 'outside'))
  await settles(collected, ['re a', 'cr n', 'cr n/b', 're c'])
  writeFileSync(join(root, 'outside/secret'), '')
  writeFileSync(at('n/b/x'), '')
  await settles(collected, ['re a', 'cr n', 'cr n/b', 're c', 'cr n/b/x'])
})

test('follows no link (threat T13)', async () => {
  mkdirSync(join(root, 'outside'))
  symlinkSync(join(root, 'outside'), at('link'))
  const collected = await watch('.')
  writeFileSync(join(root, 'outside/secret'), '')
  writeFileSync(at('x'), '')
  await settles(collected, ['cr x'])
  const refusals = { link: 'path_refused', '../outside': 'path_refused', '/etc': 'path_refused' }
  const others = { '\0': 'path_refused', '': 'path_refused', x: 'not_a_folder', none: 'file_not_found' }
  for (const [path, code] of Object.entries({ ...refusals, ...others }))
    expect(await rejectionOf(serve().open(path, true)), path).toMatchObject({ code })
})

test.each([
  ['is removed', 'a/b', () => rmSync(at('a/b'), { recursive: true })],
  ['is renamed', 'a/b', () => renameSync(at('a/b'), at('a/n'))],
  ['has a folder above it renamed', 'a/b', () => renameSync(at('a'), at('n'))],
  ['is the workspace and is renamed', '.', () => renameSync(join(root, 'w'), join(root, 'other'))],
  ['has the workspace renamed', 'a/b', () => renameSync(join(root, 'w'), join(root, 'other'))],
])('ends when the folder %s', async (_, path, act) => {
  mkdirSync(at('a/b/c'), { recursive: true })
  const collected = await watch(path)
  act()
  await eventually(collected.isOver, { what: 'the end' })
  expect(collected.paths()).toContain(`re ${path}`)
})

test('reports when there are too many folders', async () => {
  for (const path of ['a/deep/er', 'a/deep/est', 'src']) mkdirSync(at(path), { recursive: true })
  const collected = await watch('.', true, serve({ maxFolders: 3 }))
  await eventually(() => collected.notices.length > 1, { what: 'the overflow' })
  expect(collected.notices.slice(0, 2)).toEqual([
    { kind: 'ready', folders: 3 },
    { kind: 'overflow', reason: 'folders' },
  ])
  // Those near the top are watched.
  for (const path of ['x', 'a/x', 'a/deep/x', 'src/x']) writeFileSync(at(path), '')
  await settles(collected, ['cr x', 'cr a/x', 'cr src/x'])
})

test('reports a queue overflow and watches all folders again', async () => {
  const collected = await watch('.')
  // Nothing reads the queue before the next turn of the event loop.
  const limit = Number(await Bun.file('/proc/sys/fs/inotify/max_queued_events').text())
  for (let count = 0; count <= limit / 2; count += 1) {
    closeSync(openSync(at(`f${count % 100}`), 'w'))
    chmodSync(at(`f${count % 100}`), count % 2 === 0 ? 0o600 : 0o644)
    rmSync(at(`f${count % 100}`))
  }
  mkdirSync(at('lost'))
  await eventually(() => collected.notices.some((notice) => notice.kind === 'overflow'), {
    what: 'the overflow',
  })
  let count = 0
  await eventually(
    () => {
      writeFileSync(at(`lost/${(count += 1)}`), '')
      return collected.paths().some((path) => /^cr lost\/\d+$/.test(path))
    },
    { what: 'the folder to be watched' },
  )
})

test('does not report temporary files of sandboxd', async () => {
  const collected = await watch('.')
  const pending = await files.create('made', {})
  writeFileSync(at(`.sandwire-${'0'.repeat(24)}.part`), '')
  writeFileSync(at('between'), '')
  await settles(collected, ['cr between'])
  await files.commit(pending.id)
  await settles(collected, ['cr between', 'cr made'])
})

test('reports a file named like an unnamed one', async () => {
  writeFileSync(at('#123'), '')
  const collected = await watch('.')
  appendFileSync(at('#123'), 'x')
  await settles(collected, ['ch #123'])
})

test('a client that disconnects during the scan removes no watch of another', async () => {
  for (let count = 0; count < 50; count += 1) mkdirSync(at(`d${count}/e`), { recursive: true })
  const service = serve()
  for (let count = 0; count < 10; count += 1) {
    const leaver = await service.open('.', true)
    leaver.close()
    const collected = await watch('.', true, service)
    writeFileSync(at(`d49/e/f${count}`), '')
    await settles(collected, [`cr d49/e/f${count}`])
  }
})

test('leaves nothing behind and limits the number of watchers', async () => {
  mkdirSync(at('a/b'), { recursive: true })
  const service = serve({ maxWatchers: 2 })
  const queues = (): number => readdirSync('/proc/self/fd').filter(isQueue).length
  const before = queues()
  const [one, two] = [await service.open('.', true), await service.open('a', true)]
  expect(await rejectionOf(service.open('.', true))).toMatchObject({ code: 'rate_limited' })
  expect(queues()).toBe(before + 2)
  one.close()
  one.close()
  expect(await rejectionOf(service.open('none', true))).toMatchObject({ code: 'file_not_found' })
  const three = await service.open('.', true)
  expect(await rejectionOf(service.open('.', true))).toMatchObject({ code: 'rate_limited' })
  two.close()
  three.close()
  expect(await three.next()).toMatchObject({ kind: 'ready' })
  expect(await three.next()).toBeUndefined()
  expect(queues()).toBe(before)
})

function isQueue(fd: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).includes('inotify')
  } catch {
    // The descriptor of the listing itself.
    return false
  }
}
