import { expect, test } from 'bun:test'
import { ensureAgentProgram } from '../src/run/agent-program.ts'

test('the host installs only programs that it has, not those of agents that the operator declared', async () => {
  const asked: string[] = []
  const HOST = {
    fetch: (url: string) => {
      asked.push(url)
      return Promise.resolve(Response.json({ state: 'installed', version: '1' }))
    },
  }
  const config = { provider: 'host' } as const
  expect(await ensureAgentProgram({ HOST }, config, { name: 'goose', isInstalled: false })).toBe(true)
  expect(asked).toEqual([])
  expect(await ensureAgentProgram({ HOST }, config, { name: 'claude', isInstalled: true })).toBe(true)
  expect(asked).toEqual(['http://host/agents/claude'])
})
