import { beforeAll, expect, test } from 'bun:test'
import { isSandboxId, sandboxIdOf } from '@sandwire/internal-api'
import { type IdMint, openIdMint } from '../src/sandbox/sandbox-id.ts'
import { isSandboxName, parseSandboxRef } from '../src/sandbox/sandbox-id.ts'

const random = (bytes: Uint8Array<ArrayBuffer>): Uint8Array => crypto.getRandomValues(bytes)
let mint: IdMint
beforeAll(async () => {
  mint = await openIdMint(new Uint8Array(32).fill(7), random)
})

test('a minted id is recognized, and its session ids contain it', async () => {
  const id = await mint.mintSandbox()
  expect(isSandboxId(id)).toBe(true)
  expect(await mint.isMinted(id)).toBe(true)
  expect(sandboxIdOf(mint.mintSession(id))).toBe(id)
})

test('(threat T7) a forged or modified id is not recognized', async () => {
  const id = await mint.mintSandbox()
  const other = await openIdMint(new Uint8Array(32).fill(8), random)
  expect(await mint.isMinted(await other.mintSandbox())).toBe(false)
  for (let at = 0; at < id.length; at++) {
    const bent = id.slice(0, at) + (id[at] === '0' ? '1' : '0') + id.slice(at + 1)
    expect(await mint.isMinted(bent)).toBe(false)
  }
  for (const text of ['', 'dev', id.toUpperCase(), `${id}0`, `${id}\n`, id.slice(1)])
    expect(await mint.isMinted(text)).toBe(false)
})

test('ids are unique', async () => {
  const ids = await Promise.all(Array.from({ length: 1_000 }, () => mint.mintSandbox()))
  expect(new Set(ids).size).toBe(1_000)
})

test('(threat T7) a name has one spelling and never parses as an id', () => {
  for (const name of ['dev', 'a', '0', 'a-b', 'x'.repeat(63)]) expect(isSandboxName(name)).toBe(true)
  const bad = [
    '',
    '-a',
    'a-',
    'A',
    'a_b',
    'a.b',
    'a/../b',
    'é',
    'e\u0301',
    'a\0b',
    '..',
    '__proto__',
    'x'.repeat(64),
  ]
  for (const name of [...bad, '0'.repeat(32)]) expect(isSandboxName(name)).toBe(false)
  expect(parseSandboxRef('dev')).toEqual({ by: 'name', name: 'dev' })
  expect(parseSandboxRef('0'.repeat(32))).toEqual({ by: 'id', id: '0'.repeat(32) })
  for (const name of bad) expect(() => parseSandboxRef(name)).toThrow('neither an id nor a name')
})
