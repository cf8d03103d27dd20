import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { encodeId } from '@sandwire/internal-api'
import { databaseOf } from '../control/object-databases.ts'
import { type DataFolder, dataFolderAt } from './data-folder.ts'
import { forgetDatabases, requireContent, requireStore, writeManifest } from './manifest.ts'

let folder: DataFolder
const at = (name: string): string => path.join(folder.root, name)
const check = (acceptsMissing = false): readonly string[] =>
  requireContent(folder, { acceptsMissing, hasSandboxes: true })
const write = (name: string, bytes = 8192): void =>
  writeFileSync(at(name), 'x'.repeat(bytes), { mode: 0o600 })

beforeEach(() => {
  folder = dataFolderAt(mkdtempSync(path.join(tmpdir(), 'manifest-')))
  for (const name of ['keys', 'control/account', 'control/sandbox']) mkdirSync(at(name), { recursive: true })
  write('keys/id-key', 44)
  for (const name of ['account/a', 'sandbox/b', 'sandbox/c']) write(`control/${name}.sqlite`)
  writeManifest(folder)
})
afterEach(() => rmSync(folder.root, { recursive: true }))

test('accepts a folder that is complete, or has more', () => {
  expect(check).not.toThrow()
  write('control/sandbox/d.sqlite')
  expect(check).not.toThrow()
})

test('names a database that is missing or empty', () => {
  rmSync(at('control/sandbox/b.sqlite'))
  expect(check).toThrow(`the database "${at('control/sandbox/b.sqlite')}" is missing or empty\nhint: `)
  truncateSync(at('control/account/a.sqlite'), 0)
  expect(check).toThrow(`the database "${at('control/account/a.sqlite')}" and 1 more is missing or empty`)
  expect(() => check(true)).not.toThrow()
  writeManifest(folder)
  expect(check).not.toThrow()
})

test('requires no database of a destroyed sandbox', () => {
  write('control/sandbox/c.sqlite', 4096)
  writeManifest(folder)
  rmSync(at('control/sandbox/c.sqlite'))
  expect(check).not.toThrow()
})

test('requires no database from before it is removed', () => {
  const file = at('control/sandbox/c.sqlite')
  forgetDatabases(folder, [file])
  rmSync(file)
  expect(check).not.toThrow()
})

test('names the logs that a server which was killed must have', () => {
  const log = 'control/sandbox/metadata.sqlite-wal'
  write(log)
  write('control/sandbox/b.sqlite-wal')
  writeManifest(folder)
  // Closed by control.
  rmSync(at('control/sandbox/b.sqlite-wal'))
  expect(check).not.toThrow()
  rmSync(at(log))
  expect(check).toThrow(
    `the server was not stopped, and the write-ahead log "${at(log)}" is missing or empty\nhint: `,
  )
  expect(() => check(true)).not.toThrow()
  write(log)
  writeManifest(folder, { isStopping: true })
  rmSync(at(log))
  expect(check).not.toThrow()
})

test('names a key that is missing or was replaced, even when missing databases are accepted', () => {
  write('keys/id-key', 45)
  expect(() => check(true)).toThrow(`"${at('keys/id-key')}" was replaced`)
  rmSync(at('keys/id-key'))
  expect(() => check(true)).toThrow(`"${at('keys/id-key')}" is missing`)
})

test('a folder without a manifest, or with a damaged one, is accepted', () => {
  for (const text of ['{', '{}']) {
    writeFileSync(folder.manifest, text)
    rmSync(at('control/sandbox/b.sqlite'), { force: true })
    expect(check).not.toThrow()
  }
  rmSync(folder.manifest)
  expect(check).not.toThrow()
})

test('names the database of a sandbox that has files, also without a manifest, until its loss is accepted', () => {
  const id = encodeId(new Uint8Array(20))
  const file = databaseOf(folder.objects, 'sandbox', id)
  const create = (): void => {
    using database = new Database(file)
    database.run('CREATE TABLE sandbox (id TEXT)')
  }
  mkdirSync(at(`sandboxes/${id}`), { recursive: true })
  // It was never started, so it has no files.
  expect(check).not.toThrow()
  write(`sandboxes/${id}/spec.json`)
  create()
  expect(check).not.toThrow()
  // As with its write-ahead log missing.
  const damages = [() => writeFileSync(file, ''), () => rmSync(file), () => rmSync(folder.manifest)]
  for (const damage of damages) {
    damage()
    expect(check).toThrow(`sandboxes have files, and the database "${file}" is missing or empty\nhint: `)
  }
  expect(check(true)).toEqual([id])
  writeManifest(folder)
  expect(check()).toEqual([id])
  create()
  expect(check()).toEqual([])
})

test('names a store of versions that is not the one that was there, until its loss is accepted', () => {
  const versions = at('versions')
  const open = (acceptsMissing = false): void => requireStore(folder, versions, { acceptsMissing })
  open()
  writeManifest(folder)
  open()
  // As while its disk is not mounted.
  renameSync(versions, at('unmounted'))
  const problem = `"${at('versions/store-id')}" is missing or empty\nhint: `
  expect(open).toThrow(problem)
  mkdirSync(versions)
  expect(open).toThrow(problem)
  rmSync(versions, { recursive: true })
  renameSync(at('unmounted'), versions)
  open()
  // The operator chose another.
  requireStore(folder, at('others'), { acceptsMissing: false })
  open()
  rmSync(versions, { recursive: true })
  expect(open).toThrow(problem)
  open(true)
  open()
})
