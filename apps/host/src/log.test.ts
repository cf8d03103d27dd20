import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { LogFile } from './log.ts'

let folder = ''
let file = ''
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'log-'))
  file = path.join(folder, 'host.log')
})
afterEach(() => rmSync(folder, { recursive: true }))

test('appends across restarts, to a private file', () => {
  new LogFile(file).write('one\n')
  new LogFile(file).write('two\n')
  expect(readFileSync(file, 'utf8')).toBe('one\ntwo\n')
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

test('bounds the log and its predecessor, and keeps the newest lines whole', () => {
  const log = new LogFile(file, 100)
  for (let index = 0; index < 1000; index += 1) log.write(`line ${index}\n`)
  expect(readdirSync(folder).sort()).toEqual(['host.log', 'host.log.1'])
  const kept = readFileSync(`${file}.1`, 'utf8') + readFileSync(file, 'utf8')
  expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(200)
  expect(kept).toEndWith('line 998\nline 999\n')
  expect(kept).toStartWith('line ')
})
