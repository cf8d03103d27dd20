import { expect, test } from 'bun:test'
import { divideSharedMemory, parseSharedMemory } from './shared-memory.ts'

test('counts shared memory without a file by inode, up to the end of its mappings', () => {
  const maps = `7f0000000000-7f0000100000 rw-s 00000000 00:01 11                         /dev/zero (deleted)
7f0000100000-7f0000200000 ---s 00300000 00:01 11                         /dev/zero (deleted)
7f0000300000-7f0000301000 rw-s 00000000 00:01 12                         /dev/zero (deleted)
7f0000400000-7f0000500000 rw-s 00000000 08:01 13                         /home/user/data
7f0000600000-7f0000700000 rw-p 00000000 00:00 0
`
  expect([...parseSharedMemory(maps)]).toEqual([
    ['11', 0x400000],
    ['12', 0x1000],
  ])
})

test('divides shared memory among the processes that map it', () => {
  const mapped = new Map([
    [1, new Map([['11', 800]])],
    [2, new Map([['11', 600]]).set('12', 50)],
    [3, new Map<string, number>()],
  ])
  expect([...divideSharedMemory(mapped)]).toEqual([
    [1, 400],
    [2, 450],
    [3, 0],
  ])
})
