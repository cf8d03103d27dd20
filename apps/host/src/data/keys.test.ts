import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { rejectionOf } from '@sandwire/testing'
import { type DataFolder, openDataFolder } from './data-folder.ts'
import { openKeys } from './keys.ts'

let folder: DataFolder
beforeEach(() => {
  folder = openDataFolder(mkdtempSync(path.join(tmpdir(), 'keys-')))
})
afterEach(() => rmSync(folder.root, { recursive: true }))

const keep = { isNewToken: false }

test('creates keys once, and reuses them', async () => {
  const first = await openKeys(folder, keep)
  expect(await openKeys(folder, keep)).toEqual(first)
  for (const file of ['signing-key', 'id-key'])
    expect(statSync(path.join(folder.keys, file)).mode & 0o777).toBe(0o600)
})

test('the signing key signs and the id key has 32 bytes', async () => {
  const { signingKey, idKey } = await openKeys(folder, keep)
  const key = await crypto.subtle.importKey('pkcs8', Buffer.from(signingKey, 'base64'), 'Ed25519', false, [
    'sign',
  ])
  expect((await crypto.subtle.sign('Ed25519', key, new Uint8Array(1))).byteLength).toBe(64)
  expect(Buffer.from(idKey, 'base64')).toHaveLength(32)
})

test('control gets only a hash of the local token', async () => {
  const { localTokenSha256 } = await openKeys(folder, keep)
  const token = readFileSync(folder.localToken, 'utf8')
  expect(token).toMatch(/^swl_[A-Za-z0-9_-]{43}$/)
  expect(statSync(folder.localToken).mode & 0o777).toBe(0o600)
  expect(localTokenSha256).toBe(createHash('sha256').update(token).digest('hex'))
})

test('a new token replaces the old one and no key', async () => {
  const before = await openKeys(folder, keep)
  const after = await openKeys(folder, { isNewToken: true })
  expect(after).toEqual({ ...before, localTokenSha256: expect.not.stringContaining(before.localTokenSha256) })
})

test('rejects a token file with other content', async () => {
  writeFileSync(folder.localToken, 'password', { mode: 0o600 })
  expect((await rejectionOf(openKeys(folder, keep)))?.message).toContain('--new-token')
})

test.each([
  ['signing-key', ''],
  ['signing-key', 'bm90IGEga2V5'],
  ['id-key', ''],
  ['id-key', 'c2hvcnQ='],
  ['session-token-secret', 'k1:!!'],
  ['page-name', 'sandwire'],
])('names a malformed key file, and leaves it unchanged: %s %j', async (name, text) => {
  await openKeys(folder, keep)
  const file = path.join(folder.keys, name)
  writeFileSync(file, text)
  const { code, message } = SandwireError.from(await rejectionOf(openKeys(folder, keep)))
  expect([code, message]).toEqual([
    'bad_request',
    expect.stringContaining(`Cannot use "${file}": it contains no `),
  ])
  expect(readFileSync(file, 'utf8')).toBe(text)
})

test('does not replace a missing id key when sandboxes exist', async () => {
  const { idKey } = await openKeys(folder, keep)
  const file = path.join(folder.keys, 'id-key')
  rmSync(file)
  writeFileSync(path.join(folder.objects, 'x'), '')
  expect((await rejectionOf(openKeys(folder, keep)))?.message).toContain(`"${file}" is missing`)
  expect(existsSync(file)).toBe(false)
  writeFileSync(file, idKey, { mode: 0o600 })
  expect((await openKeys(folder, keep)).idKey).toBe(idKey)
})
