import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { STOP_REASON_FILE } from '@sandwire/internal-api'
import { STOP_REASONS, type StopReason } from '@sandwire/protocol'
import { planShutdown, readStopReason } from './shutdown.ts'

describe('planShutdown', () => {
  test('reports the remaining time, and the reason if it is known', () => {
    expect(planShutdown(4_000).notice).toEqual({ message: 'The sandbox is stopping: it ends within 4 s' })
    expect(planShutdown(3_500, 'idle').notice).toEqual({
      message: 'The sandbox is stopping because it was idle: it ends within 4 s',
      reason: 'idle',
    })
  })

  test('leaves time for the last output of processes that are killed', () => {
    expect(planShutdown(4_000).timeouts).toEqual({ hangupMs: 500, terminateMs: 2_500 })
    expect(planShutdown(1_000).timeouts).toEqual({ hangupMs: 250, terminateMs: 500 })
  })
})

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
