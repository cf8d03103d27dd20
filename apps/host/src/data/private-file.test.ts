import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import {
  makePrivateFolder,
  readOrCreate,
  readPrivateFile,
  removeTemporaryFiles,
  temporaryName,
  writePrivateFile,
} from './private-file.ts'

let folder = ''
const at = (name: string): string => path.join(folder, name)
const modeOf = (name: string): number => statSync(at(name)).mode & 0o777
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'private-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('a private folder', () => {
  test('is created private, with its parents', () => {
    makePrivateFolder(at('a/b'))
    expect([modeOf('a'), modeOf('a/b')]).toEqual([0o700, 0o700])
  })

  test('becomes private when it was not', () => {
    mkdirSync(at('open'))
    chmodSync(at('open'), 0o755)
    makePrivateFolder(at('open'))
    expect(modeOf('open')).toBe(0o700)
  })

  test('is never a symbolic link', () => {
    mkdirSync(at('theirs'))
    symlinkSync(at('theirs'), at('link'))
    expect(() => makePrivateFolder(at('link'))).toThrow('not a folder of this user')
  })
})

describe('a private file', () => {
  test('is replaced atomically, and private', () => {
    writeFileSync(at('f'), 'longer than what follows')
    chmodSync(at('f'), 0o644)
    writePrivateFile(at('f'), 'new')
    expect([readPrivateFile(at('f')), modeOf('f')]).toEqual(['new', 0o600])
    expect(readdirSync(folder)).toEqual(['f'])
  })

  test('is refused when other users can read it', () => {
    writeFileSync(at('f'), 'x')
    chmodSync(at('f'), 0o640)
    expect(() => readPrivateFile(at('f'))).toThrow('chmod 600')
  })

  test('is refused when it is a symbolic link', () => {
    writePrivateFile(at('f'), 'x')
    symlinkSync(at('f'), at('link'))
    expect(() => readPrivateFile(at('link'))).toThrow('Cannot trust')
  })

  test('leaves no temporary file when writing fails', () => {
    mkdirSync(at('f/in-the-way'), { recursive: true })
    expect(() => writePrivateFile(at('f'), 'x')).toThrow()
    expect(readdirSync(folder)).toEqual(['f'])
  })

  test('is created once', () => {
    expect(readOrCreate(at('k'), () => 'one')).toBe('one')
    expect(readOrCreate(at('k'), () => 'two')).toBe('one')
  })
})

/** No process has this pid: the kernel's limit is 4,194,304. */
const NOBODY = 4_200_000

test('removes only temporary files of ended processes', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'unfinished-'))
  const at = (name: string): string => path.join(folder, name)
  try {
    mkdirSync(at(`sandboxd-abc.${NOBODY}.new/screen`), { recursive: true })
    const others = [
      'control.mjs',
      `control.mjs.${process.ppid}.new`,
      'a.new',
      'a.0.new',
      `a.${NOBODY}.new.txt`,
    ]
    for (const name of [...others, `control.mjs.${NOBODY}.new`]) writeFileSync(at(name), 'x')
    writeFileSync(temporaryName(at('an-earlier-one-with-our-number')), 'x')
    removeTemporaryFiles(folder)
    expect(readdirSync(folder).toSorted()).toEqual(others.toSorted())
  } finally {
    rmSync(folder, { recursive: true })
  }
})
