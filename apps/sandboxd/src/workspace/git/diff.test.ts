import { expect, test } from 'bun:test'
import { DiffParser } from './diff.ts'

const RAW = ':100644 100644 aaaaaaa bbbbbbb'
const STREAM = Buffer.concat([
  Buffer.from(`${RAW} M\0a b\0${RAW} R090\0old\0new\0${RAW} M\0`),
  Buffer.from([0xff, 0]),
  Buffer.from(`${RAW} U\0both\0${RAW} M\0both\0`),
  Buffer.from('3\t1\ta b\x000\t2\t\0old\0new\0-\t-\t'),
  Buffer.from([0xff, 0]),
  Buffer.from('0\t0\tboth\x004\t0\tboth\0\0diff --git a/a b\n+with \0 inside\n'),
])

test.each([1, 2, 7, 1000])('reads files, counts and text in slices of %d bytes', (size) => {
  const parser = new DiffParser()
  const text: Uint8Array[] = []
  for (let at = 0; at < STREAM.length; at += size) text.push(parser.push(STREAM.subarray(at, at + size)))
  expect(Buffer.concat(text).toString()).toBe('diff --git a/a b\n+with \0 inside\n')
  expect([...parser.files.values()]).toEqual([
    { path: 'a b', status: 'M', added: 3, removed: 1, isBinary: false },
    { path: 'new', from: 'old', status: 'R', added: 0, removed: 2, isBinary: false },
    { path: '\u{dcff}', status: 'M', added: 0, removed: 0, isBinary: true },
    { path: 'both', status: 'U', added: 4, removed: 0, isBinary: false },
  ])
})

test('no output means no difference', () => {
  const parser = new DiffParser()
  expect(parser.push(new Uint8Array())).toHaveLength(0)
  expect(parser.files.size).toBe(0)
})
