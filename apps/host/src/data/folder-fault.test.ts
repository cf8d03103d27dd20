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

test('other faults stay what they are', () => {
  expect(nameFolderFault(new Error('x'), FOLDER).code).toBe('internal')
  expect(nameFolderFault(systemError('EADDRINUSE'), FOLDER).message).toBe('Internal error')
  const told = new SandwireError('conflict', 'x', { cause: systemError('EACCES') })
  expect(nameFolderFault(told, FOLDER)).toBe(told)
})
