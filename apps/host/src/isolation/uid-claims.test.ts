import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { firstIdOf, IdsInUse, UidClaims, UidsInUse } from './uid-claims.ts'

describe('claims on user ids', () => {
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'claims-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  test('give each sandbox three stable ids, one for its egress proxy', () => {
    const first = firstIdOf(folder)
    const claims = new UidClaims(folder)
    const a = { daemon: first, user: first + 1, egress: first + 16_384 }
    expect(claims.claim('a', () => true)).toEqual(a)
    expect(claims.claim('b', () => true)).toEqual({
      daemon: first + 2,
      user: first + 3,
      egress: first + 16_386,
    })
    expect(new UidClaims(folder).claim('a', () => true)).toEqual(a)
  })

  test('skip ids that a process still uses', () => {
    const first = firstIdOf(folder)
    expect(new UidClaims(folder).claim('a', (ids) => ids.daemon !== first).daemon).toBe(first + 2)
  })

  test('are free again after their release', () => {
    const claims = new UidClaims(folder)
    const ids = claims.claim('a', () => true)
    claims.release('a')
    expect(claims.find('a')).toBeUndefined()
    expect(claims.claim('b', () => true)).toEqual(ids)
  })

  test('do not change when the data folder moves', () => {
    const ids = new UidClaims(folder).claim('a', () => true)
    const moved = `${folder}-moved`
    renameSync(folder, moved)
    try {
      expect(new UidClaims(moved).claim('a', () => true)).toEqual(ids)
    } finally {
      rmSync(moved, { recursive: true })
    }
  })

  test('are unassigned when nothing was claimed', () => {
    const claims = new UidClaims(folder)
    expect(claims.find('a')).toBeUndefined()
    claims.release('a')
  })

  test('are in a range that no account or tool uses', () => {
    for (const each of ['/a', '/b', '/srv/data', folder]) {
      expect(firstIdOf(each)).toBeGreaterThanOrEqual(0x7000_0000)
      expect(firstIdOf(each) + 32_768).toBeLessThanOrEqual(0x8000_0000)
    }
  })
})

describe('ids in use', () => {
  let base = ''
  const ids = { daemon: 7, user: 8, egress: 9 }
  beforeEach(() => {
    base = mkdtempSync(path.join(tmpdir(), 'in-use-'))
  })
  afterEach(() => rmSync(base, { recursive: true, force: true }))

  test('belong to one data folder, until its processes have ended', () => {
    const [original, copy] = ['a', 'b'].map((owner) => new UidsInUse(base, owner))
    if (original === undefined || copy === undefined) throw new Error('There are two')
    original.take(ids, () => false)
    original.take(ids, () => false)
    expect([original.isOthers(ids), copy.isOthers(ids)]).toEqual([false, true])
    expect(() => copy.take(ids, () => false)).toThrow(IdsInUse)
    copy.release(ids)
    expect(copy.isOthers(ids)).toBe(true)
    copy.take(ids, () => true)
    expect([original.isOthers(ids), copy.isOthers(ids)]).toEqual([true, false])
    copy.release(ids)
    expect([original.isOthers(ids), readdirSync(base)]).toEqual([false, []])
  })
})
