import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ensureVersionFolder } from './version-folder.ts'

const cache = mkdtempSync(path.join(tmpdir(), 'versions-'))
afterAll(() => rmSync(cache, { recursive: true, force: true }))

test('a version folder is written once, also with links that lead nowhere, and again when it is damaged', () => {
  let writes = 0
  const write = (folder: string): void => {
    writes += 1
    writeFileSync(path.join(folder, 'file'), 'content')
    symlinkSync('/nowhere', path.join(folder, 'dangling'))
    symlinkSync('/usr', path.join(folder, 'to-folder'))
  }
  const ensure = (): string => ensureVersionFolder(cache, { name: 'etc', version: '1', write })
  const folder = ensure()
  expect([ensure(), writes]).toEqual([folder, 1])
  expect(readlinkSync(path.join(folder, 'dangling'))).toBe('/nowhere')
  writeFileSync(path.join(folder, 'file'), '')
  expect([ensure(), writes]).toEqual([folder, 2])
  expect(readFileSync(path.join(folder, 'file'), 'utf8')).toBe('content')
})
