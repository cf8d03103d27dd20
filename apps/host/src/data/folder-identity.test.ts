import { afterEach, beforeEach, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { filesIn } from '../supervisor/sandbox-files.ts'
import { type DataFolder, dataFolderAt, openDataFolder } from './data-folder.ts'
import { claimIdentity, findOriginal, scopeOf } from './folder-identity.ts'
import { DataLock } from './lock.ts'
import { makePrivateFolder } from './private-file.ts'
import { identifyProcess } from './process-identity.ts'

const ID = 'a'.repeat(32)

let base = ''
let folder: DataFolder
beforeEach(() => {
  base = mkdtempSync(path.join(tmpdir(), 'identity-'))
  folder = openDataFolder(path.join(base, 'data'))
  claimIdentity(folder)
})
afterEach(() => rmSync(base, { recursive: true }))

function copy(): DataFolder {
  const root = path.join(base, 'copy')
  cpSync(folder.root, root, { recursive: true })
  return dataFolderAt(root)
}

test('gives a data folder a scope that stays when the folder is used again or moved', () => {
  const scope = scopeOf(folder)
  expect(scope).toMatch(/^[0-9a-f]{8}$/)
  claimIdentity(folder)
  expect(scopeOf(folder)).toBe(scope)
  const moved = dataFolderAt(path.join(base, 'moved'))
  renameSync(folder.root, moved.root)
  expect(findOriginal(moved)).toBeUndefined()
  claimIdentity(moved)
  expect(scopeOf(moved)).toBe(scope)
})

test('recognizes a copy, once, and gives it another scope', () => {
  const copied = copy()
  expect(findOriginal(folder)).toBeUndefined()
  expect(findOriginal(copied)).toBe(folder.root)
  claimIdentity(copied)
  expect(findOriginal(copied)).toBeUndefined()
  expect(scopeOf(copied)).not.toBe(scopeOf(folder))
  expect(scopeOf(copied)).toMatch(/^[0-9a-f]{8}$/)
})

test('makes a copy forget the processes of the original', () => {
  const files = filesIn(path.join(folder.sandboxes, ID))
  makePrivateFolder(files.folder)
  for (const file of [files.state, files.lock, files.spec, folder.workerd]) writeFileSync(file, '{}')
  const copied = copy()
  claimIdentity(copied)
  const kept = filesIn(path.join(copied.sandboxes, ID))
  expect([kept.state, kept.lock, copied.workerd].filter((file) => existsSync(file))).toEqual([])
  expect(existsSync(kept.spec)).toBe(true)
  expect([files.state, files.lock, folder.workerd].every((file) => existsSync(file))).toBe(true)
})

test('a copied lock does not name the holder of the copy', () => {
  // Another process, which runs as long as this one.
  writeFileSync(folder.lock, readLockOfParent())
  expect(DataLock.take(folder.lock).kind).toBe('held')
  const copied = copy()
  const outcome = DataLock.take(copied.lock, { isCopy: true })
  expect(outcome.kind).toBe('taken')
  if (outcome.kind === 'taken') outcome.lock.release()
})

function readLockOfParent(): string {
  const parent = identifyProcess(process.ppid)
  if (parent === undefined) throw new Error('There is a parent')
  return JSON.stringify(parent)
}

test('starts over with a malformed identity', () => {
  writeFileSync(folder.identity, 'x', { mode: 0o600 })
  expect(findOriginal(folder)).toBeUndefined()
  claimIdentity(folder)
  expect(scopeOf(folder)).toMatch(/^[0-9a-f]{8}$/)
})
