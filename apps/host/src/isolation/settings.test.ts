import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'
import { defaultRunBase } from './settings.ts'

const folder = mkdtempSync('/tmp/run-')
afterAll(() => rmSync(folder, { recursive: true }))

test('sockets of sandboxes lie in the runtime folder of the user, unless its path is too long for them', () => {
  const long = path.join(folder, 'x'.repeat(40))
  mkdirSync(long)
  expect(defaultRunBase({ XDG_RUNTIME_DIR: folder }, 7)).toBe(`${folder}/sandwire`)
  for (const XDG_RUNTIME_DIR of [long, path.join(folder, 'absent'), 'relative', undefined])
    expect(defaultRunBase({ XDG_RUNTIME_DIR }, 7)).toBe('/tmp/sandwire-7')
  expect(defaultRunBase({ XDG_RUNTIME_DIR: folder }, 0)).toBe('/run/sandwire')
})
