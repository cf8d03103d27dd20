import { expect, test } from 'bun:test'
import { queuedBytes, socketBytes, unixSocketBytes } from './socket-memory.ts'

test('reads both queues of a TCP or UDP socket (threat T32)', () => {
  const row = '0: 0100007F:1F90 0100007F:D2F0 01 00000010:00000100 00:00000000 00000000 1000 0 1 1'.split(' ')
  expect(queuedBytes(row)).toBe(0x110)
  expect(queuedBytes([])).toBe(0)
})

test('counts Unix sockets above a usual number with what they can queue (threat T32)', () => {
  expect([unixSocketBytes(0, 100), unixSocketBytes(256, 100), unixSocketBytes(300, 100)]).toEqual([
    0, 0, 4_400,
  ])
})

test('counts nothing for a process that ended', () => {
  expect(socketBytes(2 ** 30)).toBe(0)
})
