import { expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createRuntimeFolder } from './runtime-folder.ts'

const mode = (file: string): string => (statSync(file).mode & 0o777).toString(8)

test('createRuntimeFolder makes files that only this user can read, and removes them', () => {
  const base = mkdtempSync(path.join(tmpdir(), 'runtime-'))
  const folder = createRuntimeFolder({ XDG_RUNTIME_DIR: base })
  const file = folder.write('token', 'secret')
  expect(file).toStartWith(base)
  expect([mode(file), mode(path.dirname(file)), mode(path.join(base, 'sandwire'))]).toEqual([
    '600',
    '700',
    '700',
  ])
  expect(readFileSync(file, 'utf8')).toBe('secret')
  folder.remove()
  expect(existsSync(file)).toBe(false)
  rmSync(base, { recursive: true })
})

test('createRuntimeFolder does not trust a runtime folder that others can enter', () => {
  const base = mkdtempSync(path.join(tmpdir(), 'runtime-'))
  chmodSync(base, 0o755)
  const home = mkdtempSync(path.join(tmpdir(), 'home-'))
  const folder = createRuntimeFolder({ XDG_RUNTIME_DIR: base, HOME: home })
  expect(folder.path).toStartWith(path.join(home, '.cache', 'sandwire'))
  for (const each of [base, home]) rmSync(each, { recursive: true })
})

test('createRuntimeFolder falls back to a private temporary folder when the home cannot be written', () => {
  const folder = createRuntimeFolder({ HOME: '/dev/null' })
  expect(folder.path.startsWith(path.join(tmpdir(), 'sandwire-'))).toBe(true)
  expect(statSync(folder.write('token', 'secret')).mode & 0o777).toBe(0o600)
  expect(statSync(path.dirname(folder.path)).mode & 0o777).toBe(0o700)
  rmSync(path.dirname(folder.path), { recursive: true })
})
