import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DISK_FULL } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { findFolderProblem, isDiskFull, toHostError, toFolderError } from './folder-problem.ts'

let folder = ''
const at = (name: string): string => path.join(folder, name)
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'problem-'))
  mkdirSync(at('there'))
  writeFileSync(at('file'), '')
  symlinkSync(at('nowhere/deeper'), at('dangling'))
  symlinkSync(at('circle'), at('circle'))
  symlinkSync(at('there'), at('link'))
})
afterAll(() => rmSync(folder, { recursive: true }))

test.each(['there', 'there/new/deeper', 'link', 'link/new', 'new'])('finds no problem with %s', (name) => {
  expect(findFolderProblem(at(name))).toBeUndefined()
})

test.each([
  ['file', 'file', 'is not a folder'],
  ['file/below/it', 'file', 'is not a folder'],
  ['dangling', 'dangling', 'is a broken symbolic link'],
  ['dangling/below', 'dangling', 'is a broken symbolic link'],
  ['circle', 'circle', 'is a symbolic link loop'],
])('names the path component that makes %s unusable', (name, what, why) => {
  expect(findFolderProblem(at(name))).toBe(`"${at(what)}" ${why}`)
})

test('truncates a long path in the message', () => {
  for (const name of ['a'.repeat(300), 'a/'.repeat(3_000)]) {
    const problem = findFolderProblem(at(name)) ?? ''
    expect(problem).toEndWith('…" is too long for a path')
    expect(problem.length).toBeLessThan(250)
  }
})

const FOLDER = '/srv/data'

function systemError(code: string, path?: string): Error {
  return Object.assign(new Error(`${code}: raw`), { code, ...(path !== undefined && { path }) })
}

test.each([
  ['ENOSPC', 'its disk is full'],
  ['EDQUOT', 'the disk quota of this user is used up'],
  ['EROFS', 'it is read-only'],
  ['EACCES', 'this user may not write there'],
  ['ENOTDIR', 'it is not a folder'],
])('explains %s with the data folder and the reason', (code, why) => {
  for (const caught of [
    systemError(code),
    new SandwireError('internal', 'x', { cause: systemError(code) }),
  ]) {
    const { message, cause } = toFolderError(caught, FOLDER)
    expect(message).toStartWith(`Cannot use the data folder "${FOLDER}": ${why}\nhint: `)
    expect(message).toEndWith('--data')
    expect(cause).toBeUndefined()
  }
})

test('names the path of an error outside the data folder', () => {
  const { message } = toFolderError(systemError('EROFS', '/run/sandwire/x'), FOLDER)
  expect(message).toBe('Cannot use "/run/sandwire/x": it is read-only')
  expect(toFolderError(systemError('EROFS', `${FOLDER}/lock`), FOLDER).message).toContain(
    `folder "${FOLDER}"`,
  )
})

test('names an entry of the wrong kind', () => {
  const { message } = toFolderError(systemError('EISDIR', `${FOLDER}/lock`), FOLDER)
  expect(message).toBe(
    `Cannot use "${FOLDER}/lock": it is a folder\nhint: remove it, or choose another data folder with --data`,
  )
  expect(toFolderError(systemError('EEXIST', FOLDER), FOLDER).message).toContain(`data folder "${FOLDER}"`)
})

test('reports ENOENT as a problem of the data folder only for a path inside it', () => {
  expect(toFolderError(systemError('ENOENT', FOLDER), FOLDER).message).toContain(
    'the folder cannot be created',
  )
  for (const path of [undefined, '/usr/bin/tool'])
    expect(toFolderError(systemError('ENOENT', path), FOLDER).message).toBe('Internal error')
})

test('returns other errors unchanged', () => {
  expect(toFolderError(new Error('x'), FOLDER).code).toBe('internal')
  expect(toFolderError(systemError('EADDRINUSE'), FOLDER).message).toBe('Internal error')
  const conflict = new SandwireError('conflict', 'x', { cause: systemError('EACCES') })
  expect(toFolderError(conflict, FOLDER)).toBe(conflict)
})

const noRoom = Object.assign(new Error('x'), { code: 'ENOSPC' })

test.each([
  noRoom,
  Object.assign(new Error('x'), { code: 'EDQUOT' }),
  new SandwireError('internal', 'Internal error', { cause: noRoom }),
])('reports a lack of disk space with the folder %#', (caught) => {
  const { code, message, cause } = toHostError(caught, FOLDER)
  expect([code, message]).toEqual(['sandbox_failed', `Cannot do this with the sandbox: ${DISK_FULL}`])
  expect(cause).toMatchObject({ folder: FOLDER })
})

test('returns other errors unchanged', () => {
  expect(toHostError(new Error('x'), FOLDER).code).toBe('internal')
  expect(toHostError(Object.assign(new Error('x'), { code: 'EACCES' }), FOLDER).code).toBe('internal')
  expect(toHostError(new SandwireError('conflict', 'x'), FOLDER).code).toBe('conflict')
})

test('reports a disk with free space as not full', () => {
  expect(isDiskFull(tmpdir())).toBe(false)
})
