import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { CredentialStore } from './credential-store.ts'

let folder: string
let store: CredentialStore

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'sign-ins-'))
  store = new CredentialStore({ XDG_CONFIG_HOME: folder })
})
afterEach(() => rmSync(folder, { recursive: true }))

const of = (origin: string) => ({ version: 1, origin, bearer: 'b' }) as const
const modeOf = (file: string): number => statSync(file).mode & 0o777

test('stores a sign-in for this user only, with any umask', () => {
  const before = process.umask(0)
  try {
    store.write(of('https://a.example'))
  } finally {
    process.umask(before)
  }
  const file = store.fileOf('https://a.example')
  expect(modeOf(file)).toBe(0o600)
  expect(modeOf(path.dirname(file))).toBe(0o700)
  expect(store.read('https://a.example')).toEqual(of('https://a.example'))
  expect(readdirSync(path.dirname(file))).toEqual([path.basename(file)])
})

test('restricts an existing folder before it writes', () => {
  const folder = path.dirname(store.fileOf('x'))
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  chmodSync(folder, 0o755)
  store.write(of('https://a.example'))
  expect(modeOf(folder)).toBe(0o700)
})

test('refuses a folder that is a symbolic link', () => {
  const folder = path.dirname(store.fileOf('x'))
  mkdirSync(path.dirname(folder), { recursive: true })
  symlinkSync(tmpdir(), folder)
  expect(() => store.write(of('https://a.example'))).toThrow('not a folder')
})

test('reads a sign-in for exactly its origin (threat T2)', () => {
  store.write(of('https://a.example'))
  for (const other of [
    'https://a.example:8443',
    'http://a.example',
    'https://b.example',
    'https://a.example.',
  ])
    expect(store.read(other)).toBeUndefined()
  copyFileSync(store.fileOf('https://a.example'), store.fileOf('https://b.example'))
  chmodSync(store.fileOf('https://b.example'), 0o600)
  expect(() => store.read('https://b.example')).toThrow('another server')
  expect(store.origins()).toEqual(['https://a.example'])
})

test.each([0o644, 0o640, 0o660, 0o602])('refuses a sign-in with mode %o', (mode) => {
  store.write(of('https://a.example'))
  chmodSync(store.fileOf('https://a.example'), mode)
  expect(() => store.read('https://a.example')).toThrow(/others can (read|write)/)
  expect(store.origins()).toEqual([])
})

test('replaces and removes a sign-in', () => {
  store.write(of('https://a.example'))
  store.write({ ...of('https://a.example'), bearer: 'c' })
  store.write(of('https://b.example'))
  expect(store.read('https://a.example')?.bearer).toBe('c')
  expect(store.origins().toSorted()).toEqual(['https://a.example', 'https://b.example'])
  store.remove('https://a.example')
  store.remove('https://a.example')
  expect(store.read('https://a.example')).toBeUndefined()
  expect(store.origins()).toEqual(['https://b.example'])
})

test('returns nothing without any sign-in', () => {
  expect(store.origins()).toEqual([])
  expect(store.read('https://a.example')).toBeUndefined()
})
