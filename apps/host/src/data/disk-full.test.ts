import { expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { DISK_FULL } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { isDiskFull, nameFault } from './disk-full.ts'

const noRoom = Object.assign(new Error('x'), { code: 'ENOSPC' })

test.each([
  noRoom,
  Object.assign(new Error('x'), { code: 'EDQUOT' }),
  new SandwireError('internal', 'Internal error', { cause: noRoom }),
])('a fault for want of room names the disk %#', (caught) => {
  const { code, message } = nameFault(caught)
  expect([code, message]).toEqual(['sandbox_failed', `Cannot do this with the sandbox: ${DISK_FULL}`])
})

test('other faults stay what they are', () => {
  expect(nameFault(new Error('x')).code).toBe('internal')
  expect(nameFault(Object.assign(new Error('x'), { code: 'EACCES' })).code).toBe('internal')
  expect(nameFault(new SandwireError('conflict', 'x')).code).toBe('conflict')
})

test('a disk with room is not full', () => {
  expect(isDiskFull(tmpdir())).toBe(false)
})
