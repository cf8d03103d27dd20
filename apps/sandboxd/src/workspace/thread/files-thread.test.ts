import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { closeSync, mkdtempSync, readdirSync, readlinkSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Found } from '../files.ts'
import { FilesThread } from './files-thread.ts'

let root = ''
let workers: Worker[] = []
let files: FilesThread

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'sandwire-thread-'))
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

/** Files beneath the workspace that this process has open. */
function openBeneath(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`)
      return target.startsWith(root) ? [target] : []
    } catch {
      // The one that the listing itself was made with.
      return []
    }
  })
}

describe('FilesThread', () => {
  test('does every verb', async () => {
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
})
