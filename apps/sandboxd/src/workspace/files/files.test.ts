import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  closeSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { EOPNOTSUPP } from '../beneath/constants.ts'
import { resolveWithOpenat2 } from '../beneath/resolve.ts'
import type { NewFile } from '../files.ts'
import { copy } from './copy.ts'
import { list, stat } from './listing.ts'
import { makeFolder, PendingFiles } from './write.ts'
import { remove } from './remove.ts'
import { rename } from './rename.ts'
import { finish, openFixture, type Fixture } from './files.fixture.ts'

let fixture: Fixture
const at = (name: string): string => path.join(fixture.root, name)

beforeEach(() => {
  fixture = openFixture(resolveWithOpenat2)
})
afterEach(() => fixture[Symbol.dispose]())

function codeOf(run: () => unknown): string {
  try {
    run()
    return 'done'
  } catch (error) {
    return SandwireError.from(error).code
  }
}

function write(name: string, text: string, file: NewFile = {}): string {
  const pending = new PendingFiles(fixture.context)
  const { fd, id } = pending.create(7, name, file)
  try {
    writeSync(fd, text)
    const committed = pending.commit(id)
    if (committed.folder >= 0) closeSync(committed.folder)
    return committed.stat.etag
  } finally {
    closeSync(fd)
  }
}

describe('list', () => {
  const names = (options: { maxEntries: number; after?: string; timeMs?: number }): [string[], boolean] => {
    const { result } = finish(list(fixture.context, 'many', { timeMs: 10_000, ...options }))
    return [result.entries.map(({ name }) => name), result.truncated]
  }

  beforeEach(() => {
    mkdirSync(at('many'))
    for (const name of ['b', 'a', 'C', 'ä', 'z', '🦜', 'B']) writeFileSync(at(`many/${name}`), name)
  })

  test('is sorted by bytes and paged', () => {
    const all = ['B', 'C', 'a', 'b', 'z', 'ä', '🦜']
    expect(names({ maxEntries: 100 })).toEqual([all, false])
    expect(names({ maxEntries: 7 })).toEqual([all, false])
    expect(names({ maxEntries: 3 })).toEqual([all.slice(0, 3), true])
    expect(names({ maxEntries: 3, after: 'a' })).toEqual([['b', 'z', 'ä'], true])
    expect(names({ maxEntries: 3, after: 'z' })).toEqual([['ä', '🦜'], false])
  })

  test('makes progress even at the timeout', () => {
    const [found, isTruncated] = names({ maxEntries: 100, timeMs: -1 })
    expect([found.length, isTruncated]).toEqual([1, true])
  })

  test('holds no more names than it needs', () => {
    for (let count = 0; count < 3_000; count += 1) writeFileSync(at(`many/f${count}`), '')
    expect(names({ maxEntries: 2, after: 'f2' })).toEqual([['f20', 'f200'], true])
  })

  test("reports the kind of a link's target inside", () => {
    symlinkSync('../plain', at('many/to-file'))
    symlinkSync('../inside', at('many/to-folder'))
    symlinkSync('../../outside', at('many/out'))
    const { result } = finish(list(fixture.context, 'many', { maxEntries: 100, timeMs: 10_000 }))
    const links = result.entries
      .filter(({ kind }) => kind === 'link')
      .map(({ name, target }) => [name, target])
    expect(links).toEqual([
      ['out', undefined],
      ['to-file', 'file'],
      ['to-folder', 'folder'],
    ])
  })
})

describe('writing', () => {
  test('keeps the mode of a replaced file and gives a new one the default', () => {
    chmodSync(at('plain'), 0o750)
    write('plain', 'new')
    write('fresh', 'new')
    write('given', 'new', { mode: 0o4640 })
    const modes = ['plain', 'fresh', 'given'].map((name) => statSync(at(name)).mode & 0o7777)
    expect(modes).toEqual([0o750, 0o644, 0o640])
  })

  test('detects a concurrent change, also one made during the write', () => {
    const { etag } = stat(fixture.context, 'plain', false)
    expect(codeOf(() => write('plain', 'x', { ifMatch: ['other'] }))).toBe('file_changed')
    const pending = new PendingFiles(fixture.context)
    const { fd, id } = pending.create(1, 'plain', { ifMatch: [etag] })
    writeFileSync(at('plain'), 'changed meanwhile')
    expect(codeOf(() => pending.commit(id))).toBe('file_changed')
    closeSync(fd)
    expect(readFileSync(at('plain'), 'utf8')).toBe('changed meanwhile')
    expect(readdirSync(fixture.root).toSorted()).toEqual(['inside', 'plain'])
  })

  test('accepts a matching etag, any with *, and an absent file with ifAbsent', () => {
    const { etag } = stat(fixture.context, 'plain', false)
    const next = write('plain', 'x', { ifMatch: ['other', etag] })
    expect(next).not.toBe(etag)
    expect(codeOf(() => write('plain', 'y', { ifMatch: ['*'] }))).toBe('done')
    expect(codeOf(() => write('missing', 'y', { ifMatch: ['*'] }))).toBe('file_changed')
    expect(codeOf(() => write('plain', 'y', { ifAbsent: true }))).toBe('file_changed')
    expect(codeOf(() => write('absent', 'y', { ifAbsent: true }))).toBe('done')
  })

  test('leaves nothing of a discarded file', () => {
    const pending = new PendingFiles(fixture.context)
    const { fd, id } = pending.create(1, 'plain', {})
    writeSync(fd, 'half')
    pending.discard(id)
    closeSync(fd)
    expect(readFileSync(at('plain'), 'utf8')).toBe('harmless')
    expect(readdirSync(fixture.root).toSorted()).toEqual(['inside', 'plain'])
  })

  test('leaves nothing of a discarded or refused file where unnamed files are not supported', () => {
    const pending = new PendingFiles(fixture.context, () => -EOPNOTSUPP)
    const { etag } = stat(fixture.context, 'plain', false)
    const [discarded, refused, kept] = [1, 2, 3].map((id) => {
      const file = pending.create(id, 'plain', id === 3 ? {} : { ifMatch: [etag] })
      writeSync(file.fd, 'half')
      closeSync(file.fd)
      return file
    })
    if (discarded === undefined || refused === undefined || kept === undefined) throw new Error('Cannot be')
    expect(readdirSync(fixture.root)).toHaveLength(5)
    pending.discard(discarded.id)
    writeFileSync(at('plain'), 'changed meanwhile')
    expect(codeOf(() => pending.commit(refused.id))).toBe('file_changed')
    expect(readFileSync(at('plain'), 'utf8')).toBe('changed meanwhile')
    expect(readdirSync(fixture.root)).toHaveLength(3)
  })

  test('refuses to replace a folder or to write below a file', () => {
    expect(codeOf(() => write('inside', 'x'))).toBe('is_a_folder')
    expect(codeOf(() => write('plain/x', 'x'))).toBe('not_a_folder')
    expect(codeOf(() => write('no/such/x', 'x'))).toBe('file_not_found')
    expect(codeOf(() => write('no/such/x', 'x', { makesParents: true }))).toBe('done')
  })

  test('replaces a link or writes to its target, as requested', () => {
    symlinkSync('plain', at('link'))
    write('link', 'through', { followsLink: true })
    expect([readlinkSync(at('link')), readFileSync(at('plain'), 'utf8')]).toEqual(['plain', 'through'])
    write('link', 'own')
    expect([statSync(at('link')).isFile(), readFileSync(at('plain'), 'utf8')]).toEqual([true, 'through'])
  })
})

describe('folders', () => {
  test('are created alone or with their parents', () => {
    expect(codeOf(() => makeFolder(fixture.context, 'a/b', { makesParents: false }))).toBe('file_not_found')
    expect(codeOf(() => makeFolder(fixture.context, 'a/b', { makesParents: true }))).toBe('done')
    expect(codeOf(() => makeFolder(fixture.context, 'a/b', { makesParents: true }))).toBe('done')
    expect(codeOf(() => makeFolder(fixture.context, 'a/b', { makesParents: false }))).toBe('file_exists')
    expect(codeOf(() => makeFolder(fixture.context, 'plain/b', { makesParents: true }))).toBe('not_a_folder')
  })

  test('are removed with their contents only when requested', () => {
    const run = (recursive: boolean): string =>
      codeOf(() => finish(remove(fixture.context, 'inside', { recursive })))
    symlinkSync('../../outside', at('inside/out'))
    expect(run(false)).toBe('folder_not_empty')
    expect(run(true)).toBe('done')
    expect(run(true)).toBe('file_not_found')
    expect(readdirSync(path.join(fixture.outside, 'outside')).length).toBe(4)
  })
})

describe('moving and copying', () => {
  const move = (from: string, to: string, replaces = false): string =>
    codeOf(() => finish(rename(fixture.context, from, to, { replaces })))
  const duplicate = (from: string, to: string, replaces = false): string =>
    codeOf(() => finish(copy(fixture.context, from, to, { replaces })))

  test('never replace anything unless requested', () => {
    expect(move('plain', 'inside/f')).toBe('file_exists')
    expect(duplicate('plain', 'inside/f')).toBe('file_exists')
    expect(duplicate('plain', 'inside/f', true)).toBe('done')
    expect(move('plain', 'inside/f', true)).toBe('done')
    expect(move('plain', 'other')).toBe('file_not_found')
  })

  test('refuse to copy a folder into itself', () => {
    expect(move('inside', 'inside/deep/x')).toBe('path_refused')
    expect(duplicate('inside', 'inside/deep/x')).toBe('path_refused')
    expect(duplicate('.', 'x')).toBe('path_refused')
  })

  test('include the contents of a folder and skip special files', () => {
    Bun.spawnSync(['mkfifo', at('inside/pipe')])
    symlinkSync('f', at('inside/link'))
    chmodSync(at('inside/deep'), 0o711)
    chmodSync(at('inside/f'), 0o755)
    expect(finish(copy(fixture.context, 'inside', 'twin', { replaces: false })).result).toEqual({ left: 1 })
    expect(readdirSync(at('twin')).toSorted()).toEqual(['deep', 'f', 'link', 'victim'])
    expect([statSync(at('twin/deep')).mode & 0o777, statSync(at('twin/f')).mode & 0o777]).toEqual([
      0o711, 0o755,
    ])
    expect(readlinkSync(at('twin/link'))).toBe('f')
  })

  test('replace a folder atomically', () => {
    mkdirSync(at('old'))
    writeFileSync(at('old/x'), '')
    expect(duplicate('inside', 'old', true)).toBe('done')
    expect(readdirSync(at('old')).toSorted()).toEqual(['deep', 'f', 'victim'])
    expect(duplicate('plain', 'old', true)).toBe('done')
    expect(readFileSync(at('old'), 'utf8')).toBe('harmless')
    expect(readdirSync(fixture.root).toSorted()).toEqual(['inside', 'old', 'plain'])
  })

  test('leave nothing of a canceled copy', () => {
    const job = copy(fixture.context, 'inside', 'twin', { replaces: false })
    for (let steps = 0; steps < 3; steps += 1) job.next()
    expect(readdirSync(fixture.root)).toHaveLength(3)
    job.return({ left: 0 })
    expect(readdirSync(fixture.root).toSorted()).toEqual(['inside', 'plain'])
  })
})
