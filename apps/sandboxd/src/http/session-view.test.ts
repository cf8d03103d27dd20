import { expect, test } from 'bun:test'
import { DEFAULT_LIMITS } from '@sandwire/protocol'
import { createLog } from '../log.ts'
import { SessionRunner } from '../sessions/session-runner.ts'
import { viewSession } from './session-view.ts'

test('viewSession truncates a long command', () => {
  const options = {
    id: 's1',
    mode: 'pipe',
    overflow: 'block',
    keepSeconds: 60,
    limits: DEFAULT_LIMITS,
  } as const
  const argv = [`/${'./'.repeat(60_000)}nothing`] as const
  const command = { argv, cwd: '/', baseEnv: {}, isPinned: false, isTemplate: false, requestId: 'r' }
  const runner = new SessionRunner(options, command, {
    startProcess: () => ({ failure: 'not_found', message: '' }),
    writePane: async () => false,
    createScreen: () => {
      throw new Error('There is no terminal')
    },
    log: createLog(
      () => undefined,
      () => new Date(0),
    ),
    now: () => 0,
    onFinished: () => undefined,
    onExit: () => undefined,
    onGone: () => undefined,
    onRefused: () => undefined,
    countOutput: () => undefined,
    countInput: () => undefined,
  })
  expect(JSON.stringify(viewSession(runner, 0)).length).toBeLessThan(1_000)
})
