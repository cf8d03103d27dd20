import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { readTail } from './sandbox-store.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'tail-'))
const file = path.join(folder, 'log')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('returns nothing for a missing log', () => {
  expect(readTail(path.join(folder, 'absent'), 100)).toBe('')
})

test('returns the last whole lines that fit, over both files', () => {
  writeFileSync(`${file}.1`, 'one\ntwo\n')
  writeFileSync(file, 'three\nfour\n')
  const all = 'one\ntwo\nthree\nfour\n'
  expect(readTail(file, 100)).toBe(all)
  for (let bytes = 0; bytes <= all.length; bytes += 1) {
    const tail = readTail(file, bytes)
    expect(tail.length).toBeLessThanOrEqual(bytes)
    expect(all.endsWith(tail)).toBe(true)
    expect(tail === '' || all[all.length - tail.length - 1] === '\n' || tail === all).toBe(true)
  }
  expect(readTail(file, 5)).toBe('four\n')
  expect(readTail(file, 4)).toBe('')
  expect(readTail(file, 15)).toBe('two\nthree\nfour\n')
})
