import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { STOP_REASON_FILE } from '@sandwire/internal-api'
import { leaveStopReason } from './stop-reason-file.ts'

let folder = ''
const at = (name: string): string => path.join(folder, name)
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'stop-reason-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const leave = (): void => leaveStopReason({ daemonSocket: at('sandboxd.sock') }, 'idle')

test('the reason is where sandboxd, another user, can read it', () => {
  leave()
  expect(readFileSync(at(STOP_REASON_FILE), 'utf8')).toBe('idle')
  expect(statSync(at(STOP_REASON_FILE)).mode & 0o777).toBe(0o644)
})

test('nothing that a sandbox put there is followed or replaced', () => {
  symlinkSync(at('elsewhere'), at(STOP_REASON_FILE))
  leave()
  expect(existsSync(at('elsewhere'))).toBe(false)
  rmSync(at(STOP_REASON_FILE))
  writeFileSync(at(STOP_REASON_FILE), 'mine')
  leave()
  expect(readFileSync(at(STOP_REASON_FILE), 'utf8')).toBe('mine')
})
