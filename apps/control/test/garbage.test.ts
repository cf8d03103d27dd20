import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { createLog } from '../src/log.ts'
import { storeFork } from '../src/versions/fork-records.ts'
import { Garbage } from '../src/versions/garbage.ts'
import { VERSION_SCHEMA } from '../src/versions/version-schema.ts'
import { VersionStore } from '../src/versions/version-store.ts'
import { sqlOf } from './support/bun-sql.ts'
import { MemoryStore } from './support/memory-store.ts'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS

function idOf(save: string): string {
  return save.charCodeAt(0).toString(16).padStart(32, '0')
}

/** A sandbox with its rows; all share one store and one clock. */
class TestSandbox {
  readonly rows: VersionStore
  readonly garbage: Garbage
  readonly #database: Database
  readonly id: string
  isSaving = false
  isFull = false
  readonly #fleet: Fleet

  constructor(id: string, fleet: Fleet, backup?: Buffer) {
    this.id = id
    this.#database = backup === undefined ? new Database(':memory:') : Database.deserialize(backup)
    const sql = sqlOf(this.#database)
    if (backup === undefined) for (const statement of VERSION_SCHEMA) sql.exec(statement)
    this.rows = new VersionStore((query, ...bindings) => sql.exec(query, ...bindings).toArray())
    this.#fleet = fleet
    this.garbage = new Garbage({
      store: this.rows,
      segments: fleet.store,
      sandbox: () => id,
      isSaving: () => this.isSaving,
      isFull: () => this.isFull,
      needsSegments: async (fork) => fleet.sandboxes.get(fork)?.rows.hasForeignSegments(fork) ?? false,
      nowMs: () => fleet.nowMs,
      log: createLog(
        () => undefined,
        () => fleet.nowMs,
      ),
    })
  }

  /** Stores a segment; `save` commits a version that needs it and `others`. */
  async addSegment(id: string): Promise<void> {
    this.rows.addSegment(
      { id, lineage: this.id, sizeBytes: 1, trailerBytes: 1, sha256: 'x' },
      this.#fleet.nowMs,
    )
    await this.#fleet.store.put(`segments/${this.id}/${id}`, Buffer.from('x'))
  }

  async save(id: string, others: readonly string[] = [], kind: 'automatic' | 'checkpoint' = 'automatic') {
    await this.addSegment(id)
    const segments = [...others, id]
    const facts = {
      save: id,
      createdMs: this.#fleet.nowMs,
      kind,
      name: undefined,
      isFuzzy: false,
      unreadable: 0,
    }
    const { isCommitted } = this.rows.commit(
      { ...facts, manifests: segments, segments },
      this.rows.head?.save,
    )
    expect(isCommitted).toBe(true)
  }

  /** As the object of the parent and that of the new sandbox do. */
  async fork(id: string): Promise<TestSandbox> {
    const { head } = this.rows
    if (head === undefined) throw new Error('no version')
    const made = this.#fleet.add(id)
    const content = this.rows.content(head)
    const record = { fork: id, segments: content.segments }
    await storeFork(this.#fleet.store, this.id, record)
    this.rows.addFork(record, this.#fleet.nowMs)
    made.rows.adoptFork(content, this.#fleet.nowMs)
    return made
  }

  backup(): Buffer {
    return this.#database.serialize()
  }

  /** As a destroyed sandbox's object does. */
  async destroy(): Promise<void> {
    await this.garbage.deleteAll(this.id)
    const kept = this.rows.forkedContent(this.id)
    const left = this.#fleet.add(this.id)
    if (kept !== undefined) left.rows.keepForForks(kept, this.#fleet.nowMs)
  }
}

/** Sandboxes that share one store and one clock. */
class Fleet {
  readonly store = new MemoryStore()
  readonly sandboxes = new Map<string, TestSandbox>()
  nowMs = 1_000_000

  add(id: string, backup?: Buffer): TestSandbox {
    const made = new TestSandbox(id, this, backup)
    this.sandboxes.set(id, made)
    return made
  }

  get keys(): readonly string[] {
    return this.#below('segments/')
  }

  get forks(): readonly string[] {
    return this.#below('forks/')
  }

  #below(prefix: string): readonly string[] {
    const keys = [...this.store.objects.keys()].filter((key) => key.startsWith(prefix))
    return keys.map((key) => key.slice(prefix.length)).toSorted()
  }

  /** Lets time pass, and has every sandbox collect what is due. */
  async pass(ms: number): Promise<void> {
    this.nowMs += ms
    for (const { garbage } of this.sandboxes.values()) await garbage.onAlarm()
  }
}

describe('garbage collection', () => {
  test('deletes what no version needs after a minute when the account may store no more', async () => {
    const fleet = new Fleet()
    const box = fleet.add('box')
    for (const id of ['a', 'b']) await box.save(id)
    box.rows.remove(1)
    box.rows.markUnused(fleet.nowMs)
    box.isFull = true
    await fleet.pass(60_000)
    expect(fleet.keys).toEqual(['box/b'])
  })

  test('deletes what no version needs, an hour after it was last needed', async () => {
    const fleet = new Fleet()
    const box = fleet.add('box')
    await box.save('a')
    await box.save('b')
    fleet.nowMs += 5 * HOUR_MS
    box.rows.remove(1)
    box.rows.markUnused(fleet.nowMs)
    await fleet.pass(HOUR_MS - 1)
    expect(fleet.keys).toEqual(['box/a', 'box/b'])
    expect(box.garbage.nextMs()).toBe(fleet.nowMs + 1)
    await fleet.pass(1)
    expect(fleet.keys).toEqual(['box/b'])
    expect(box.garbage.nextMs()).toBeUndefined()
  })

  test('leaves the segments of a save in progress alone, however long it takes', async () => {
    const fleet = new Fleet()
    const box = fleet.add('box')
    await box.save('a')
    box.isSaving = true
    await box.addSegment('b1')
    await fleet.pass(3 * HOUR_MS)
    await box.save('b2', ['b1'])
    box.isSaving = false
    await fleet.pass(HOUR_MS)
    expect(fleet.keys).toEqual(['box/a', 'box/b1', 'box/b2'])
  })

  test('keeps checkpoints, and what a failed save left only for an hour', async () => {
    const fleet = new Fleet()
    const box = fleet.add('box')
    await box.save('kept', [], 'checkpoint')
    for (let at = 0; at < 15; at += 1) await box.save(`s${at}`)
    await box.addSegment('failed')
    box.rows.prune(fleet.nowMs)
    box.rows.markUnused(fleet.nowMs)
    await fleet.pass(HOUR_MS)
    expect(fleet.keys).toEqual([
      'box/kept',
      ...Array.from({ length: 10 }, (_, at) => `box/s${at + 5}`).toSorted(),
    ])
  })

  test('keeps the segments of a fork while the parent drops its version', async () => {
    const fleet = new Fleet()
    const box = fleet.add('box')
    await box.save('a')
    const fork = await box.fork('fork')
    await box.save('b')
    box.rows.remove(1)
    box.rows.markUnused(fleet.nowMs)
    await fleet.pass(10 * DAY_MS)
    expect(fleet.keys).toEqual(['box/a', 'box/b'])
    // The fork stores everything itself, and drops the version that it was made from.
    await fork.save('own')
    fork.rows.remove(1)
    fork.rows.markUnused(fleet.nowMs)
    await fleet.pass(HOUR_MS)
    await fleet.pass(DAY_MS)
    await fleet.pass(HOUR_MS)
    expect(fleet.keys).toEqual(['box/b', 'fork/own'])
  })

  test('keeps what forks of forks need when both parents are destroyed, and then deletes it', async () => {
    const fleet = new Fleet()
    const box = fleet.add('box')
    await box.save('a')
    await box.addSegment('failed')
    const middle = await box.fork('middle')
    await middle.save('m', ['a'])
    const last = await middle.fork('last')
    await box.destroy()
    await middle.destroy()
    expect(fleet.keys).toEqual(['box/a', 'middle/m'])
    for (let days = 0; days < 5; days += 1) await fleet.pass(DAY_MS)
    expect(fleet.keys).toEqual(['box/a', 'middle/m'])
    await last.destroy()
    for (let days = 0; days < 5; days += 1) await fleet.pass(DAY_MS)
    expect(fleet.keys).toEqual([])
  })

  test('keeps what a fork needs when the parent is restored from an older backup and drops its version', async () => {
    const fleet = new Fleet()
    const box = fleet.add('box')
    await box.save(idOf('a'))
    await box.save(idOf('b'))
    const backup = box.backup()
    box.rows.remove(2)
    await box.fork('fork')
    const restored = fleet.add('box', backup)
    await restored.save(idOf('c'))
    for (const number of [1, 2]) restored.rows.remove(number)
    restored.rows.markUnused(fleet.nowMs)
    await fleet.pass(HOUR_MS)
    expect(fleet.keys).toEqual([`box/${idOf('a')}`, `box/${idOf('c')}`])
    for (let days = 0; days < 5; days += 1) await fleet.pass(DAY_MS)
    expect(fleet.keys).toEqual([`box/${idOf('a')}`, `box/${idOf('c')}`])
    await fleet.sandboxes.get('fork')?.destroy()
    for (let days = 0; days < 5; days += 1) await fleet.pass(DAY_MS)
    expect([fleet.keys, fleet.forks]).toEqual([[`box/${idOf('c')}`], []])
  })

  test('keeps what forks of forks need when parents with older lists are destroyed', async () => {
    const fleet = new Fleet()
    const box = fleet.add('box')
    const empty = box.backup()
    await box.save(idOf('a'))
    const middle = await box.fork('middle')
    await middle.save(idOf('m'), [idOf('a')])
    const before = middle.backup()
    const last = await middle.fork('last')
    await fleet.add('box', empty).destroy()
    await fleet.add('middle', before).destroy()
    for (let days = 0; days < 5; days += 1) await fleet.pass(DAY_MS)
    expect(fleet.keys).toEqual([`box/${idOf('a')}`, `middle/${idOf('m')}`])
    expect(fleet.forks).toEqual(['box/middle', 'middle/last'])
    await last.destroy()
    for (let days = 0; days < 5; days += 1) await fleet.pass(DAY_MS)
    expect([fleet.keys, fleet.forks]).toEqual([[], []])
  })

  test('deletes nothing while the record of a fork cannot be read', async () => {
    const fleet = new Fleet()
    const box = fleet.add('box')
    await box.save(idOf('a'))
    const backup = box.backup()
    await box.fork('fork')
    const restored = fleet.add('box', backup)
    await fleet.store.put('forks/box/fork', Buffer.from('damaged'))
    expect(await rejectionOf(restored.destroy())).toMatchObject({ code: 'store_unavailable' })
    expect(fleet.keys).toEqual([`box/${idOf('a')}`])
  })

  test('tries again when the store fails', async () => {
    const fleet = new Fleet()
    const box = fleet.add('box')
    await box.addSegment('failed')
    fleet.store.isFailing = true
    await fleet.pass(HOUR_MS)
    expect(box.rows.segment('failed')).toBeDefined()
    fleet.store.isFailing = false
    await fleet.pass(5 * 60 * 1000)
    expect([fleet.keys, box.rows.segment('failed')]).toEqual([[], undefined])
  })
})
