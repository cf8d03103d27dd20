import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { claimFormat, type DataFolder, dataFolderAt } from './data-folder.ts'

let folder: DataFolder
beforeEach(() => {
  folder = dataFolderAt(mkdtempSync(path.join(tmpdir(), 'format-')))
})
afterEach(() => rmSync(folder.root, { recursive: true }))

const write = (text: string): void => writeFileSync(folder.format, text, { mode: 0o600 })

test('a folder is marked once, and anew by a newer version', () => {
  claimFormat(folder, 1)
  expect(readFileSync(folder.format, 'utf8')).toBe('1\n')
  claimFormat(folder, 1)
  claimFormat(folder, 2)
  expect(readFileSync(folder.format, 'utf8')).toBe('2\n')
})

test('a mark that was cut short is made anew', () => {
  write('')
  claimFormat(folder, 1)
  expect(readFileSync(folder.format, 'utf8')).toBe('1\n')
})

test.each(['2', '10\n', 'two', '1.5'])(
  'a folder of a newer version is refused and stays as it is: %j',
  (text) => {
    write(text)
    expect(() => claimFormat(folder, 1)).toThrow(`its format "${text.trim()}" is not known`)
    expect(readFileSync(folder.format, 'utf8')).toBe(text)
  },
)
