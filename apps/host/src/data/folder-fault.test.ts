import { expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { nameFolderFault } from './folder-fault.ts'

const FOLDER = '/srv/data'

function systemError(code: string, path?: string): Error {
  return Object.assign(new Error(`${code}: raw`), { code, ...(path !== undefined && { path }) })
}

test.each([
  ['ENOSPC', 'its disk is full'],
  ['EDQUOT', 'this user has no more room on its disk'],
  ['EROFS', 'it is read-only'],
  ['EACCES', 'this user may not write there'],
  ['ENOTDIR', 'it is not a folder'],
])('a start that the system refused with %s names the folder and says why', (code, why) => {
  for (const caught of [
    systemError(code),
    new SandwireError('internal', 'x', { cause: systemError(code) }),
  ]) {
    const { message, cause } = nameFolderFault(caught, FOLDER)
    expect(message).toStartWith(`Cannot use the data folder "${FOLDER}": ${why}\nhint: `)
    expect(message).toEndWith('--data')
    expect(cause).toBeUndefined()
  }
})

test('what happened elsewhere names that place', () => {
  const { message } = nameFolderFault(systemError('EROFS', '/run/sandwire/x'), FOLDER)
  expect(message).toBe('Cannot use "/run/sandwire/x": it is read-only')
  expect(nameFolderFault(systemError('EROFS', `${FOLDER}/lock`), FOLDER).message).toContain(
    `folder "${FOLDER}"`,
  )
})

test('a part that is something else than it has to be is named itself', () => {
  const { message } = nameFolderFault(systemError('EISDIR', `${FOLDER}/lock`), FOLDER)
  expect(message).toBe(
    `Cannot use "${FOLDER}/lock": it is a folder\nhint: remove it, or choose another data folder with --data`,
  )
  expect(nameFolderFault(systemError('EEXIST', FOLDER), FOLDER).message).toContain(`data folder "${FOLDER}"`)
})

test('what is missing says something about the folder only where it is in it', () => {
  expect(nameFolderFault(systemError('ENOENT', FOLDER), FOLDER).message).toContain(
    'no folder can be made there',
  )
  for (const place of [undefined, '/usr/bin/tool'])
    expect(nameFolderFault(systemError('ENOENT', place), FOLDER).message).toBe('Internal error')
})

test('other faults stay what they are', () => {
  expect(nameFolderFault(new Error('x'), FOLDER).code).toBe('internal')
  expect(nameFolderFault(systemError('EADDRINUSE'), FOLDER).message).toBe('Internal error')
  const told = new SandwireError('conflict', 'x', { cause: systemError('EACCES') })
  expect(nameFolderFault(told, FOLDER)).toBe(told)
})
