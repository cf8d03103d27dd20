import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { STOP_REASON_FILE } from '@sandwire/internal-api'
import { findStopReason } from './stop-reason.ts'

let folder = ''
const at = (name: string): string => path.join(folder, name)
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'stop-reason-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const find = (): string | undefined => findStopReason({ kind: 'unix', path: at('sandboxd.sock') })

test.each([
  ['idle', 'it was idle'],
  ['removed', 'it is removed'],
  ['asked', 'somebody asked for it'],
  ['shutting_down', 'its server is'],
  ['unclaimed', 'its server is gone'],
])('the reason %s is put into words', (reason, words) => {
  writeFileSync(at(STOP_REASON_FILE), reason)
  expect(find()).toBe(words)
})

test.each(['', 'because', 'toString', 'idle\n', 'idle'.repeat(1_000)])('no other text is one: %j', (text) => {
  writeFileSync(at(STOP_REASON_FILE), text)
  expect(find()).toBeUndefined()
})

test('nothing is waited for, followed, or looked for beside a port', () => {
  expect(find()).toBeUndefined()
  expect(findStopReason({ kind: 'tcp', hostname: '127.0.0.1', port: 1 })).toBeUndefined()
  expect(Bun.spawnSync(['mkfifo', at(STOP_REASON_FILE)]).success).toBe(true)
  expect(find()).toBeUndefined()
  rmSync(at(STOP_REASON_FILE))
  writeFileSync(at('elsewhere'), 'idle')
  symlinkSync(at('elsewhere'), at(STOP_REASON_FILE))
  expect(find()).toBeUndefined()
})
