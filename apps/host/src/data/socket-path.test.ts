import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { openSocketFolder } from './socket-path.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync('/tmp/socket-')
})
afterEach(() => rmSync(folder, { recursive: true }))

test('the socket is in the data folder when its path fits', () => {
  expect(openSocketFolder(folder, {})).toBe(path.join(folder, 'run'))
})

test('uses a stable short folder when the path is too long for a socket', () => {
  const long = path.join(folder, 'x'.repeat(100))
  const short = openSocketFolder(long, { XDG_RUNTIME_DIR: folder })
  expect(path.dirname(short)).toBe(folder)
  expect(Buffer.byteLength(path.join(short, `${'x'.repeat(32)}.sock`))).toBeLessThanOrEqual(107)
  expect(statSync(short).mode & 0o777).toBe(0o700)
  expect(openSocketFolder(long, { XDG_RUNTIME_DIR: folder })).toBe(short)
})

test('measures bytes, not characters', () => {
  const long = path.join(folder, 'é'.repeat(30))
  expect(path.dirname(openSocketFolder(long, { XDG_RUNTIME_DIR: folder }))).toBe(folder)
})

test('refuses a symbolic link in place of the short folder', () => {
  const long = path.join(folder, 'x'.repeat(100))
  const short = openSocketFolder(long, { XDG_RUNTIME_DIR: folder })
  rmSync(short, { recursive: true })
  mkdirSync(path.join(folder, 'theirs'))
  symlinkSync(path.join(folder, 'theirs'), short)
  expect(() => openSocketFolder(long, { XDG_RUNTIME_DIR: folder })).toThrow('not a folder of this user')
})
