import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSecretFile } from './credential.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandwire-secret-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function write(name: string, text: string, mode = 0o600): string {
  const file = join(folder, name)
  writeFileSync(file, text, { mode })
  return file
}

test('openSecretFile reads a secret and removes its file only on request', () => {
  const file = write('good', '0123456789abcdef\n')
  const opened = openSecretFile(file)
  if (!opened.isOk) throw new Error(opened.message)
  expect(opened).toMatchObject({ secret: '0123456789abcdef', isExposed: false })
  expect(existsSync(file)).toBe(true)
  expect(opened.remove()).toBe(true)
  expect(existsSync(file)).toBe(false)
  expect(opened.remove()).toBe(false)
})

test('openSecretFile reports a file that other users can read', () => {
  expect(openSecretFile(write('open', '0123456789abcdef', 0o644))).toMatchObject({ isExposed: true })
})

test('openSecretFile refuses a link, whose target would stay', () => {
  const link = join(folder, 'link')
  symlinkSync(write('real', '0123456789abcdef'), link)
  expect(openSecretFile(link)).toMatchObject({
    isOk: false,
    message: expect.stringContaining('not a regular file'),
  })
})

test.each([
  ['short', '0123456789abcde'],
  ['blank', 'a'.repeat(20) + ' b'],
])('openSecretFile refuses a secret that is %s, and leaves the file', (name, text) => {
  const file = write(name, text)
  expect(openSecretFile(file)).toMatchObject({ isOk: false })
  expect(existsSync(file)).toBe(true)
})

test('openSecretFile reports a missing file', () => {
  expect(openSecretFile(join(folder, 'none'))).toMatchObject({
    isOk: false,
    message: expect.stringContaining('ENOENT'),
  })
})
