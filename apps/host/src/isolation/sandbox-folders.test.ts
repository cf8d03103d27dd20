import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ensureFolder, ensureOwnedFolderMode } from './sandbox-folders.ts'

describe('the folder for sockets', () => {
  let root = ''
  beforeEach(() => {
    root = mkdtempSync(path.join(tmpdir(), 'folders-'))
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  test('is created private, or made private again', () => {
    const folder = path.join(root, 'run')
    mkdirSync(folder, { mode: 0o777 })
    ensureOwnedFolderMode(folder, 0o700)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  test('is refused when it is a symbolic link (threat T39)', () => {
    symlinkSync(root, path.join(root, 'link'))
    expect(() => ensureOwnedFolderMode(path.join(root, 'link'), 0o700)).toThrow('it belongs to another user')
  })

  // Only root can change the owner of a folder.
  test.skipIf(process.getuid?.() !== 0)('is not taken from another user (threat T39)', () => {
    const folder = path.join(root, 'theirs')
    mkdirSync(folder)
    chownSync(folder, 65_534, 65_534)
    expect(() => ensureOwnedFolderMode(folder, 0o700)).toThrow('it belongs to another user')
  })
})

test('never follows a symbolic link in place of a folder (threat T39)', () => {
  const root = mkdtempSync(path.join(tmpdir(), 'folders-'))
  const victim = path.join(root, 'victim')
  mkdirSync(victim, { mode: 0o750 })
  symlinkSync(victim, path.join(root, 'link'))
  expect(() => ensureFolder(path.join(root, 'link'), 0o700)).toThrow('ENOTDIR')
  expect(statSync(victim).mode & 0o777).toBe(0o750)
  rmSync(root, { recursive: true })
})
