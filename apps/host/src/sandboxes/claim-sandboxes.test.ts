import { expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS, type StartSpec } from '@sandwire/internal-api'
import { createLog } from '../log.ts'
import { FakeSandboxManager } from '../sandbox-manager.fixture.ts'
import { claimRunningSandboxes } from './claim-sandboxes.ts'

function specOf(id: string): StartSpec {
  const network = { policy: 'none', allow: [] } as const
  return { id, name: 'n', publicKey: '', network, limits: DEFAULT_SANDBOX_LIMITS, env: {} }
}

test('claims every running sandbox, and logs failures', async () => {
  const manager = new FakeSandboxManager()
  for (const id of ['a', 'b', 'c']) await manager.start(specOf(id))
  await manager.stop('b', 'requested')
  manager.failure = new Error('gone')
  const lines: string[] = []
  await claimRunningSandboxes(
    manager,
    createLog(
      (line) => lines.push(line),
      () => new Date(0),
    ),
  )
  expect(manager.calls.filter((call) => call.startsWith('claim'))).toEqual(['claim a', 'claim c'])
  expect(lines.map((line) => JSON.parse(line).sandbox)).toEqual(['a', 'c'])
})
