import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { claimFormat, type DataFolder, dataFolderAt } from './data-folder.ts'

let folder: DataFolder
beforeEach(() => {
  folder = dataFolderAt(mkdtempSync(path.join(tmpdir(), 'format-')))
})
afterEach(() => rmSync(folder.root, { recursive: true }))

const write = (text: string): void => writeFileSync(folder.format, text, { mode: 0o600 })

test('writes the format into a new folder, once', () => {
  claimFormat(folder, 1)
  expect(readFileSync(folder.format, 'utf8')).toBe('1\n')
  claimFormat(folder, 1)
})

test('writes the format again when the file is empty and the folder unused', () => {
  write('')
  claimFormat(folder, 1)
  expect(readFileSync(folder.format, 'utf8')).toBe('1\n')
})

test('refuses a used folder without a format', () => {
  mkdirSync(path.join(folder.objects, 'sandbox'), { recursive: true })
  expect(() => claimFormat(folder, 1)).toThrow('it was written by an older version')
  expect(existsSync(folder.format)).toBe(false)
})

test.each(['1', '10\n', 'two', '1.5'])(
  'refuses a folder of another format and leaves it unchanged: %j',
  (text) => {
    write(text)
    expect(() => claimFormat(folder, 2)).toThrow(
      `it was written by format "${text.trim()}", and this version needs format 2`,
    )
    expect(readFileSync(folder.format, 'utf8')).toBe(text)
  },
)
