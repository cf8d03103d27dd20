import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import type { SandwireError } from '@sandwire/protocol'
import { eventually, rejectionOf } from '@sandwire/testing'
import type { Found } from '../files.ts'
import { MEMORY } from '../files/files.fixture.ts'
import { FilesThread } from './files-thread.ts'

let root = ''
let workers: Worker[] = []
let files: FilesThread

beforeEach(() => {
  root = mkdtempSync(path.join(MEMORY, 'sandwire-thread-'))
  workers = []
  files = new FilesThread({
    createWorker: () => {
      const worker = new Worker(new URL('./files-worker.ts', import.meta.url).href)
      workers.push(worker)
      return worker
    },
    setUp: { root, umask: 0o022, user: undefined },
  })
})

afterEach(() => {
  files.stop()
  rmSync(root, { recursive: true, force: true })
})

/** Files of the workspace that this process has open. */
function openBeneath(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`)
      return target.startsWith(root) ? [target] : []
    } catch {
      // The descriptor of the listing itself.
      return []
    }
  })
}

const LIMITS = { maxNodes: 100_000, maxDepth: 9, timeMs: 10_000 }

describe('FilesThread', () => {
  test('serves every request type', async () => {
    await files.makeFolder('a/b', { makesParents: true })
    const pending = await files.create('a/b/f', {})
    writeSync(pending.fd, 'hello')
    const stat = await files.commit(pending.id)
    expect(stat).toMatchObject({ kind: 'file', sizeBytes: 5, mode: 0o644 })
    expect(await files.stat('a/b/f')).toEqual(stat)
    const open = await files.open('a/b/f')
    const bytes = Buffer.alloc(10)
    expect(readSync(open.fd, bytes)).toBe(5)
    closeSync(open.fd)
    await files.rename('a/b/f', 'a/g', { replaces: false })
    expect(await files.copy('a', 'c', { replaces: false })).toEqual({ left: 0 })
    const listing = await files.list('.', { maxEntries: 10, timeMs: 1000 })
    expect(listing.entries.map(({ name }) => name)).toEqual(['a', 'c'])
    const found: Found[] = []
    for await (const part of files.walk('.', { maxNodes: 100, maxDepth: 9, timeMs: 1000 }))
      found.push(...part)
    expect(found.map((each) => each.path)).toEqual(['a', 'a/b', 'a/g', 'c', 'c/b', 'c/g'])
    await files.remove('a', { recursive: true })
    expect(readdirSync(root)).toEqual(['c'])
    expect(openBeneath()).toEqual([root])
  })

  test('restarts after its end, rejects pending requests and leaves no descriptor open', async () => {
    await files.makeFolder('a/b/c', { makesParents: true })
    const pending = await files.create('f', {})
    const walk = files.walk('.', LIMITS)[Symbol.asyncIterator]()
    const waiting = [files.list('.', { maxEntries: 9, timeMs: 1000 }), walk.next()]
    workers[0]?.terminate()
    for (const each of waiting) expect(await rejectionOf(each)).toMatchObject({ code: 'internal' })
    const left = readlinkSync(`/proc/self/fd/${pending.fd}`)
    await eventually(() => openBeneath().join() === left, {
      what: 'the descriptors of the thread to be closed',
    })
    expect(await rejectionOf(files.commit(pending.id))).toMatchObject({ code: 'internal' })
    expect(readdirSync(root)).toEqual(['a'])
    expect(openBeneath()).toEqual([root])
    expect(workers).toHaveLength(2)
  })

  test('serves short requests during a long one', async () => {
    writeFileSync(path.join(root, 'f0'), '')
    const order: string[] = []
    await files.makeFolder('many', { makesParents: false })
    for (let at = 0; at < 1_000; at += 1) writeFileSync(path.join(root, 'many', `f${at}`), 'x')
    const long = files.copy('many', 'copied', { replaces: false }).then(() => order.push('long'))
    for (let at = 0; at < 20; at += 1) {
      await files.stat('f0')
      order.push('short')
    }
    await long
    // Without time slices it would finish first.
    expect(order.indexOf('long')).toBeGreaterThan(2)
  })

  test('pauses a walk that is not consumed and closes a canceled one', async () => {
    for (let folder = 0; folder < 30; folder += 1) {
      mkdirSync(path.join(root, `d${folder}`))
      for (let at = 0; at < 100; at += 1) writeFileSync(path.join(root, `d${folder}/f${at}`), '')
    }
    const found: Found[] = []
    for await (const part of files.walk('.', LIMITS)) {
      found.push(...part)
      break
    }
    expect(found.length).toBeLessThan(1_000)
    await eventually(() => openBeneath().join() === root, { what: 'the folders of the walk to be closed' })
  })

  test('reports the limit that was reached', async () => {
    await files.makeFolder('a/b/c', { makesParents: true })
    const reached: string[] = []
    const walk = (changes: object): AsyncIterable<readonly Found[]> =>
      files.walk('.', { ...LIMITS, ...changes, reached: (limit) => reached.push(limit) })
    await Array.fromAsync(walk({ maxNodes: 2 }))
    await Array.fromAsync(walk({ maxDepth: 1 }))
    await Array.fromAsync(walk({ timeMs: -1 }))
    await Array.fromAsync(walk({}))
    expect(reached).toEqual(['nodes', 'depth', 'time'])
  })

  test('a canceled request leaves nothing behind', async () => {
    mkdirSync(path.join(root, 'many'))
    for (let at = 0; at < 1_000; at += 1) writeFileSync(path.join(root, 'many', `f${at}`), 'x')
    const controller = new AbortController()
    const copying = files.copy('many', 'copied', { replaces: false }, controller.signal)
    await files.stat('many')
    controller.abort()
    await rejectionOf(copying)
    await files.stat('many')
    expect(readdirSync(root)).toEqual(['many'])
  })

  test('limits pending requests', async () => {
    const asked = Array.from({ length: 5_000 }, () =>
      files.stat('.').then(
        () => 'done',
        (error: SandwireError) => error.code,
      ),
    )
    const answers = await Promise.all(asked)
    expect(new Set(answers)).toEqual(new Set(['done', 'rate_limited']))
    expect(answers.filter((answer) => answer === 'done')).toHaveLength(4_096)
  })

  test('reopens a workspace that was recreated, but follows no link in its place', async () => {
    expect((await files.stat('.')).kind).toBe('folder')
    rmSync(root, { recursive: true })
    expect(await rejectionOf(files.stat('.'))).toMatchObject({ code: 'file_not_found' })
    mkdirSync(root)
    writeFileSync(path.join(root, 'new'), '')
    expect((await files.stat('new')).kind).toBe('file')
    rmSync(root, { recursive: true })
    symlinkSync('/etc', root)
    expect(await rejectionOf(files.stat('passwd'))).toMatchObject({ code: 'file_not_found' })
  })
})
