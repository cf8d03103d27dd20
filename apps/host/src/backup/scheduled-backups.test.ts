import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FolderStore } from '../store/folder-store.ts'
import { openBackupStore } from './backup-store.ts'
import { backUpIfDue } from './scheduled-backups.ts'

const HOUR_MS = 3_600_000

test('backs up when the newest backup is old enough, and keeps seven', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-backups-'))
  try {
    await new FolderStore(folder).open()
    const store = openBackupStore({ folder }, {})
    if (store === undefined) throw new Error('There is no store')
    let nowMs = Date.UTC(2026, 0, 31, 9, 30)
    const make = async () => ({
      bytes: new TextEncoder().encode(String(nowMs)),
      information: { version: '1', createdMs: nowMs, databases: 0 },
    })
    const check = () => backUpIfDue({ store, everyMs: 24 * HOUR_MS, make, nowMs: () => nowMs })
    expect(await check()).toBe('20260131t093000z')
    nowMs += 23 * HOUR_MS
    expect(await check()).toBeUndefined()
    nowMs += HOUR_MS
    expect(await check()).toBe('20260201t093000z')
    for (let day = 0; day < 7; day += 1) {
      nowMs += 24 * HOUR_MS
      await check()
    }
    const names = await store.list()
    expect([names.length, names[0]]).toEqual([7, '20260202t093000z'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('fails when the store does, and changes nothing', async () => {
  const failing = {
    list: async () => ['20260101t000000z', 'unrelated'],
    put: () => Promise.reject(new Error('unreachable')),
    delete: () => Promise.reject(new Error('must not delete')),
  }
  const make = async () => ({
    bytes: new Uint8Array(),
    information: { version: '1', createdMs: 0, databases: 0 },
  })
  const nowMs = () => Date.UTC(2027, 0, 1)
  const due = backUpIfDue({ store: failing, everyMs: HOUR_MS, make, nowMs })
  expect(due).rejects.toThrow('unreachable')
})
