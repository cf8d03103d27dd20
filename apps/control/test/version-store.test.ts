import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { VERSION_SCHEMA } from '../src/versions/version-schema.ts'
import { VersionStore } from '../src/versions/version-store.ts'
import { sqlOf } from './support/bun-sql.ts'

const HOUR_MS = 60 * 60 * 1000

function open(): VersionStore {
  const sql = sqlOf(new Database(':memory:'))
  for (const statement of VERSION_SCHEMA) sql.exec(statement)
  return new VersionStore((query, ...bindings) => sql.exec(query, ...bindings).toArray())
}

/** Records a segment and commits a version that needs only it. */
function commit(
  store: VersionStore,
  save: string,
  kind: 'automatic' | 'checkpoint' = 'automatic',
  name?: string,
) {
  const parent = store.head?.save
  store.addSegment({ id: `${save}0000`, lineage: 'box', sizeBytes: 10, trailerBytes: 5, sha256: 'x' }, 0)
  return store.commit(versionOf(save, kind, name), parent)
}

function versionOf(save: string, kind: 'automatic' | 'checkpoint' = 'automatic', name?: string) {
  const segments = [`${save}0000`]
  return { save, createdMs: 1, kind, name, isFuzzy: false, unreadable: 0, manifests: segments, segments }
}

describe('the store of versions', () => {
  test('commits a save only on top of the version that it began with', () => {
    const store = open()
    expect(commit(store, 'a')).toEqual({ isCommitted: true })
    store.addSegment({ id: 'b0000', lineage: 'box', sizeBytes: 1, trailerBytes: 1, sha256: 'x' }, 0)
    expect(store.commit(versionOf('b'), undefined)).toEqual({ isCommitted: false })
    expect(store.commit(versionOf('b'), 'another')).toEqual({ isCommitted: false })
    expect(store.head?.save).toBe('a')
    expect(store.commit(versionOf('b'), 'a')).toEqual({ isCommitted: true })
    expect(store.head?.save).toBe('b')
  })

  test('commits no version whose segments are not recorded', () => {
    const store = open()
    expect(store.commit(versionOf('a'), undefined)).toEqual({ isCommitted: false, missing: 'a0000' })
    expect(store.head).toBeUndefined()
  })

  test('describes versions without their segments', () => {
    const store = open()
    commit(store, 'a')
    commit(store, 'b', 'checkpoint', 'kept')
    const facts = { createdMs: 1, isFuzzy: false, unreadable: 0, addedBytes: 10, isHeld: false }
    expect(store.describe()).toEqual([
      { number: 2, kind: 'checkpoint', name: 'kept', ...facts },
      { number: 1, kind: 'automatic', name: undefined, ...facts },
    ])
  })

  test('counts what was stored once when a version is restored', () => {
    const store = open()
    commit(store, 'a')
    commit(store, 'b')
    const [, first] = store.list()
    if (first === undefined) throw new Error('Nothing was saved')
    store.addRestored(first, 2)
    expect(store.describe().map(({ number, addedBytes }) => [number, addedBytes])).toEqual([
      [3, 0],
      [2, 10],
      [1, 10],
    ])
  })

  test('has a limited number of checkpoints, and any number of automatic versions', () => {
    const store = open()
    for (let at = 0; at < 500; at += 1) {
      store.checkCheckpoints()
      commit(store, `c${at}`, 'checkpoint')
    }
    expect(() => store.checkCheckpoints()).toThrow('a sandbox may have at most 500 checkpoints')
    store.remove(1)
    store.checkCheckpoints()
  })

  test('keeps versions that are held, and gives up the oldest when there are too many', () => {
    const store = open()
    for (let at = 0; at < 15; at += 1) commit(store, `s${at}`)
    store.held.set('one', [1, 2])
    store.held.set('two', [2, 99])
    store.prune(0)
    expect(store.list().map(({ number }) => number)).toEqual([15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 2, 1])
    expect(store.describe().map(({ isHeld }) => isHeld)).toEqual([...Array(10).fill(false), true, true])
    store.held.set('one', [])
    store.prune(0)
    expect(store.list().at(-1)?.number).toBe(2)
    store.remove(2)
    expect(store.held.has(2)).toBe(false)
    for (let at = 15; at < 300; at += 1) {
      commit(store, `s${at}`)
      store.held.set(
        `holder ${at % 5}`,
        Array.from({ length: 50 }, (_, back) => at + 1 - back * 5),
      )
      store.prune(0)
    }
    const held = store.describe().filter(({ isHeld }) => isHeld)
    expect([held.length, held[0]?.number, held.at(-1)?.number]).toEqual([200, 300, 101])
  })

  test('keeps what a restore of the workspace needs until it is done', () => {
    const store = open()
    for (let at = 0; at < 15; at += 1) commit(store, `s${at}`)
    store.pending.setWorkspace(2, { number: 3, isMissing: false })
    store.prune(0)
    expect(
      store
        .list()
        .slice(-2)
        .map(({ number }) => number),
    ).toEqual([3, 2])
    expect(store.pending.next).toMatchObject({
      version: { number: 2 },
      rest: { version: { number: 3 }, isMissing: false },
    })
    store.pending.setRestMissing()
    expect(store.pending.next?.rest?.isMissing).toBe(true)
    store.pending.set(3, true)
    expect(store.pending.next?.rest).toBeUndefined()
    store.pending.setWorkspace(2, { number: 3, isMissing: true })
    store.pending.clear()
    expect(store.pending.next).toBeUndefined()
    store.prune(0)
    expect(store.list()).toHaveLength(10)
  })

  test('keeps checkpoints and the last ten automatic versions', () => {
    const store = open()
    commit(store, 'kept', 'checkpoint', 'kept')
    for (let at = 0; at < 15; at += 1) commit(store, `s${at}`)
    store.prune(0)
    expect(store.list().map(({ save }) => save)).toEqual([
      ...Array.from({ length: 10 }, (_, at) => `s${14 - at}`),
      'kept',
    ])
    expect(store.find('kept')?.save).toBe('kept')
    expect(store.find(String(store.head?.number))?.save).toBe('s14')
  })

  test('keeps what the sandbox, then its account, then the default says', () => {
    const DAY_MS = 24 * HOUR_MS
    const store = open()
    expect(store.retention).toEqual({ automaticVersions: 10, checkpointDays: null })
    store.setRetention('account', { automaticVersions: 5, checkpointDays: 2 })
    store.setRetention('sandbox', { automaticVersions: 2 })
    expect(store.retention).toEqual({ automaticVersions: 2, checkpointDays: 2 })
    commit(store, 'old', 'checkpoint', 'old')
    commit(store, 'restored', 'checkpoint', 'restored')
    for (let at = 0; at < 5; at += 1) commit(store, `s${at}`)
    store.pending.set(2, true)
    expect(store.nextExpiryMs).toBe(1 + 2 * DAY_MS)
    store.prune(2 * DAY_MS)
    expect(store.find('old')).toBeDefined()
    store.prune(1 + 2 * DAY_MS)
    // The newest version stays, and the one that the next start restores.
    expect(store.list().map(({ save }) => save)).toEqual(['s4', 's3', 'restored'])
    expect(store.nextExpiryMs).toBeUndefined()
    store.setRetention('sandbox', {})
    expect(store.retention).toEqual({ automaticVersions: 5, checkpointDays: 2 })
  })

  test('gives up segments that no version needs, after an hour', () => {
    const store = open()
    commit(store, 'a', 'checkpoint')
    commit(store, 'b')
    store.addSegment({ id: 'failed', lineage: 'box', sizeBytes: 1, trailerBytes: 1, sha256: 'x' }, 0)
    expect(store.unused(HOUR_MS - 1)).toEqual([])
    expect(store.unused(HOUR_MS).map(({ id }) => id)).toEqual(['failed'])
    store.remove(1)
    expect(store.unused(HOUR_MS).map(({ id }) => id)).toEqual(['failed'])
    expect(store.unused(2 * HOUR_MS).map(({ id }) => id)).toEqual(['a0000', 'failed'])
  })

  test('remembers which start has its files, and which version the next start restores', () => {
    const store = open()
    commit(store, 'a')
    expect(store.lastStart).toBeUndefined()
    store.setStarted('e1', 'host')
    expect(store.lastStart).toEqual({ epoch: 'e1', provider: 'host', isSaved: false, restored: undefined })
    store.setSavedAtEnd('e2', true)
    expect(store.lastStart?.isSaved).toBe(false)
    store.setSavedAtEnd('e1', true)
    expect(store.lastStart?.isSaved).toBe(true)
    const restored = { version: 1, savedMs: 5, restoredMs: 9, reason: 'lost' } as const
    store.setStarted('e2', 'container', restored)
    expect(store.lastStart).toEqual({ epoch: 'e2', provider: 'container', isSaved: false, restored })
    store.pending.set(1, false)
    expect(store.pending.next).toMatchObject({ version: { save: 'a' }, isRequested: false })
    store.pending.set(1, true)
    expect(store.pending.next?.isRequested).toBe(true)
    store.pending.clear()
    expect(store.pending.next).toBeUndefined()
  })
})
