import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { STOP_REASON_FILE } from '@sandwire/internal-api'
import { STOP_REASONS, type StopReason } from '@sandwire/protocol'
import { readStopReason } from './stop-reason.ts'

describe('readStopReason', () => {
  let folder = ''
  const at = (name: string): string => path.join(folder, name)
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'stop-reason-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const read = (): StopReason | undefined => readStopReason({ kind: 'unix', path: at('sandboxd.sock') })

  test.each([...STOP_REASONS])('reads the reason %s', (reason) => {
    writeFileSync(at(STOP_REASON_FILE), reason)
    expect(read()).toBe(reason)
  })

  test.each(['', 'because', 'toString', 'idle\n', 'idle'.repeat(1_000)])('ignores %j', (content) => {
    writeFileSync(at(STOP_REASON_FILE), content)
    expect(read()).toBeUndefined()
  })

  test('neither blocks on a pipe nor follows a link, and reads no file for a TCP address', () => {
    expect(read()).toBeUndefined()
    expect(readStopReason({ kind: 'tcp', hostname: '127.0.0.1', port: 1 })).toBeUndefined()
    expect(Bun.spawnSync(['mkfifo', at(STOP_REASON_FILE)]).success).toBe(true)
    expect(read()).toBeUndefined()
    rmSync(at(STOP_REASON_FILE))
    writeFileSync(at('elsewhere'), 'idle')
    symlinkSync(at('elsewhere'), at(STOP_REASON_FILE))
    expect(read()).toBeUndefined()
  })
})
