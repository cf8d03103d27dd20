import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { rgPath } from '@vscode/ripgrep'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { SAME_USER } from '../../processes/run-as.ts'
import { findRipgrep } from './find-ripgrep.ts'

let root = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ripgrep-'))
})
afterEach(() => rmSync(root, { recursive: true }))

function install(file: string): string {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, '')
  chmodSync(file, 0o755)
  return file
}

const find = (): Promise<string> =>
  findRipgrep({ programFolder: join(root, 'code'), executable: join(root, 'dist/sandboxd'), user: SAME_USER })

test('prefers the ripgrep of the bundle, then the one beside the executable, then the npm package', async () => {
  expect(await find()).toBe(rgPath)
  const beside = install(join(root, 'dist/rg'))
  expect(await find()).toBe(beside)
  const bundled = install(join(root, 'code/bin/rg'))
  expect(await find()).toBe(bundled)
  chmodSync(bundled, 0o644)
  expect(await find()).toBe(beside)
})
