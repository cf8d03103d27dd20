import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  appendFileSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { rejectionOf } from '@sandwire/testing'
import type { OpenFile } from '../files.ts'
import { statOpen } from './listing.ts'
import { readBytes, streamBytes, writeBytes } from './file-bytes.ts'

/** More than one chunk. */
const SIZE = 1_500_000

let folder = ''
let file = ''

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'sandwire-bytes-'))
  file = path.join(folder, 'f')
})

afterEach(() => rmSync(folder, { recursive: true }))

function open(): OpenFile {
  const fd = openSync(file, 'r')
  return { fd, stat: statOpen(fd, 'f') }
}

function pattern(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, at) => (at * 31) & 0xff))
}

test('reads exactly the bytes of a span', async () => {
  writeFileSync(file, pattern(SIZE))
  const chunks = await Array.fromAsync(readBytes(open(), { start: 7, end: SIZE - 3 }))
  expect(Buffer.concat(chunks).equals(pattern(SIZE).subarray(7, SIZE - 3))).toBe(true)
})

test.each([
  ['shrinks', () => truncateSync(file, 600_000)],
  ['grows', () => appendFileSync(file, 'x')],
  ['is written in place', () => writeFileSync(file, pattern(SIZE).fill(1))],
])(
  '(threat T15) ends with an error, not with other bytes, when the file %s while it is read',
  async (_, change) => {
    writeFileSync(file, pattern(SIZE))
    const reader = streamBytes(open(), { start: 0, end: SIZE }).getReader()
    await reader.read()
    change()
    const rest = async (): Promise<void> => {
      while (!(await reader.read()).done);
    }
    expect(await rejectionOf(rest())).toMatchObject({ code: 'file_changed' })
  },
)

test('reads a replaced file to its end', async () => {
  writeFileSync(file, pattern(SIZE))
  const chunks = readBytes(open(), { start: 0, end: SIZE })
  const first = await chunks.next()
  writeFileSync(`${file}.new`, 'other')
  renameSync(`${file}.new`, file)
  const rest = await Array.fromAsync(chunks)
  expect(Buffer.concat([first.value ?? Buffer.of(), ...rest]).equals(pattern(SIZE))).toBe(true)
})

test('closes the file when reading stops', async () => {
  writeFileSync(file, pattern(SIZE))
  const opened = open()
  const stream = streamBytes(opened, { start: 0, end: SIZE })
  const reader = stream.getReader()
  await reader.read()
  await reader.cancel()
  expect(() => closeSync(opened.fd)).toThrow('EBADF')
})

test('writes pieces of every size in their order, from a position on', async () => {
  const pieces = [1, 0, 70_000, 3, 1_200_000, 5].map((length) => pattern(length))
  const fd = openSync(file, 'w')
  expect(await writeBytes(fd, pieces, 2)).toBe(1_270_009)
  closeSync(fd)
  expect(readFileSync(file).equals(Buffer.concat([Buffer.alloc(2), ...pieces]))).toBe(true)
})

test('reports a full disk', async () => {
  const fd = openSync('/dev/full', 'w')
  expect(await rejectionOf(writeBytes(fd, [pattern(10)]))).toMatchObject({ code: 'disk_full' })
  closeSync(fd)
})

test('reports a full disk also while it waits for the next bytes', async () => {
  async function* slow(): AsyncGenerator<Uint8Array, void, void> {
    yield pattern(1_100_000)
    // Long enough for the first batch to fail.
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate)
    yield pattern(10)
  }
  const fd = openSync('/dev/full', 'w')
  expect(await rejectionOf(writeBytes(fd, slow()))).toMatchObject({ code: 'disk_full' })
  closeSync(fd)
})

test("rejects with the source's error after pending writes", async () => {
  async function* broken(): AsyncGenerator<Uint8Array, void, void> {
    yield pattern(1_100_000)
    throw new Error('cut')
  }
  const fd = openSync(file, 'w')
  expect((await rejectionOf(writeBytes(fd, broken()))).message).toBe('cut')
  closeSync(fd)
})
