import { expect, test } from 'bun:test'
import { callTool, inTurns, openFakeAnthropic, say } from '@sandwire/testing/fake-anthropic'
import { openFakeOpenAi } from '@sandwire/testing/fake-openai'
import { eventually } from '@sandwire/testing'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { findAgent } from './support/agents/real-agents.ts'
import { startHost } from './support/control.ts'

const agent = await findAgent('opencode')
if (agent.problem !== undefined) console.error(`OpenCode on a host: skipped, ${agent.problem}`)
const KEY = 'sk-canary-opencode'
const MODEL = 'compatible-large-1'
/** On the disk of the installed program, so that it can be linked. */
const CACHE = resolve(import.meta.dir, '../../.cache')

interface RunView {
  readonly id: string
  readonly state: string
  readonly approvals: readonly { readonly requestId: string; readonly tool?: { readonly name: string } }[]
  readonly result: { readonly status: string; readonly filesChanged: readonly string[] } | null
  readonly usage: { readonly costUsd: number }
}

test.skipIf(agent.problem !== undefined).each(['anthropic', 'openai'] as const)(
  'OpenCode works on a task with an API in the format of %s, asks a person, and its run has a diff',
  async (format) => {
    const data = mkdtempSync(join(CACHE, 'agent-opencode-'))
    mkdirSync(join(data, 'agents'))
    Bun.spawnSync(['cp', '-al', `${agent.problem === undefined ? agent.folder : ''}/.`, join(data, 'agents')])
    const script = inTurns(
      callTool('write', { filePath: '/workspace/hello.txt', content: 'hello\n' }),
      callTool('terminals_terminal_open', { command: 'sh', args: ['-c', 'echo $((6*7)) shown; cat'] }),
      say('All done'),
    )
    await using api = await (format === 'anthropic' ? openFakeAnthropic : openFakeOpenAi)({
      script,
      key: KEY,
    })
    const provider = { id: 'compatible', api: 'openai', baseUrl: `${api.url}/v1`, secret: 'COMPATIBLE_KEY' }
    const settings = {
      credentials: { providers: [{ ...provider, prices: { [MODEL]: { input: 1, output: 2 } } }] },
      runs: { providers: { opencode: { provider: 'compatible', model: MODEL } } },
    }
    if (format === 'openai') writeFileSync(join(data, 'settings.json'), JSON.stringify(settings))
    try {
      await using host = await startHost({
        data,
        env:
          format === 'anthropic'
            ? { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: api.url }
            : { COMPATIBLE_KEY: KEY },
      })
      const call = async (path: string, body?: unknown): Promise<unknown> => {
        const headers = { ...host.headers, 'content-type': 'application/json' }
        const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
        return (await host.fetch(path, { headers, ...sent })).json()
      }
      const limits = { memoryBytes: 2 * 1024 ** 3, diskBytes: 512 * 1024 ** 2 }
      await call('/api/sandboxes', { name: 'dev', limits })
      expect(await call('/api/agents')).toMatchObject({ agents: [{ name: 'claude' }, { name: 'opencode' }] })
      expect(await call('/api/runs', { sandbox: 'dev', task: 'x', agent: 'other' })).toMatchObject({
        error: { code: 'bad_request' },
      })
      const order = { sandbox: 'dev', task: 'Do it', agent: 'opencode', permission: 'ask' }
      const { id } = (await call('/api/runs', order)) as RunView
      const until = (what: string, isMet: (run: RunView) => boolean): Promise<RunView> =>
        eventually(
          async () => {
            const run = (await call(`/api/runs/${id}`)) as RunView
            if (run.result !== null && run.result.status !== 'completed') throw new Error(JSON.stringify(run))
            return isMet(run) && run
          },
          { what, timeoutMs: 100_000, intervalMs: 200 },
        )
      // Before it writes a file, and before it opens a terminal.
      const tools = ['Write', 'terminals_terminal_open']
      for (const tool of tools) {
        const { approvals } = await until(`a request for ${tool}`, (view) =>
          view.approvals.some(({ tool: asked }) => asked?.name === tool),
        )
        await call(`/api/runs/${id}/approvals/${approvals[0]?.requestId}`, { decision: 'allow' })
      }
      const run = await until('the end', ({ state }) => state === 'ended')
      expect(run.result).toMatchObject({ status: 'completed', filesChanged: ['hello.txt'] })
      expect(run.usage.costUsd).toBeGreaterThan(0)
      if (format === 'openai') expect(api.requests.map(({ model }) => model)).toContain(MODEL)
      const events = await (await host.fetch(`/api/runs/${id}/events`)).text()
      expect(events).not.toContain(KEY)
      expect(events).toContain('42 shown')
      expect(await (await host.fetch(`/api/runs/${id}/diff`)).text()).toContain('+hello')
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  },
  180_000,
)
