import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import {
  callTool,
  type FakeAnthropic,
  inTurns,
  openFakeAnthropic,
  say,
} from '@sandwire/testing/fake-anthropic'
import { type GitServer, openGitServer } from '../../apps/control/test/support/git-server.ts'
import { fetchClaude, provideClaude } from './support/claude.ts'
import { type RunningHost, startHost } from './support/control.ts'

const KEY = 'sk-ant-canary-e2e-1111111111'
const GIT_TOKEN = 'ghs-canary-e2e-2222222222'
const CANARY = /canary-e2e|sgw_[a-z0-9_]+\./

/** What an agent that looks for credentials would run. */
const SEARCH = [
  'env; cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n"; cat /proc/*/cmdline 2>/dev/null | tr "\\0" " "',
  'git config -l --show-origin; cat .git/config',
  // The brackets keep the pattern from finding itself.
  'grep -rE "canary-e2[e]" ~ /workspace /tmp /run /opt/agents/claude/claude /etc 2>/dev/null | head',
  'env > found.txt; git config -l >> found.txt; cat /proc/self/environ >> found.txt',
].join('\n')

const problem = process.getuid?.() === 0 ? await fetchClaude() : 'the test needs root'

describe('the credential gateway on one machine', () => {
  let host: RunningHost
  let fake: FakeAnthropic
  let server: GitServer
  const data = mkdtempSync(join(tmpdir(), 'sandwire-gateway-'))

  beforeAll(async () => {
    fake = await openFakeAnthropic({ script: () => say('Hello'), key: KEY })
    server = openGitServer(['one'], `x-access-token:${GIT_TOKEN}`)
    const git = [{ host: 'git.example', url: server.url, secret: 'GIT_TOKEN' }]
    writeFileSync(join(data, 'settings.json'), JSON.stringify({ credentials: { git } }), { mode: 0o600 })
    if (problem === undefined) provideClaude(data)
    const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: fake.url, GIT_TOKEN }
    host = await startHost({ data, env })
  })
  afterAll(async () => {
    await host.stop()
    await fake[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
    rmSync(data, { recursive: true, force: true })
  })

  const post = (path: string, body: unknown): Promise<Response> =>
    host.fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })

  test('is reachable in a sandbox without network, and opens to nobody without a grant', async () => {
    await post('/api/sandboxes', { name: 'closed', network: { policy: 'none', allow: [] } })
    const url = 'http://127.0.0.1:3129/models/anthropic/v1/messages'
    const args = ['-s', '-m', '10', '-H', 'x-sandwire-slot: 0', url, '-d', '{}']
    const answer = await (await post('/api/sandboxes/closed/exec', { cmd: 'curl', args })).text()
    expect(answer).toContain('the gateway token is not valid here')
    expect(fake.requests.length).toBe(0)
  })

  test.skipIf(problem !== undefined)(
    `keeps every credential out of a run that searches for them${problem === undefined ? '' : `: ${problem}`}`,
    async () => {
      let found = ''
      fake.use((request) => {
        found += request.lastToolResult
        return inTurns(
          callTool('Bash', { command: SEARCH, description: 'Look around' }),
          callTool('Write', { file_path: '/workspace/hello.txt', content: 'hello' }),
          // A model that repeats all that it was shown.
          say(`Found: ${found}`),
        )(request)
      })
      const made = await post('/api/runs', {
        repo: 'https://git.example/one',
        task: 'Look for credentials',
        keep: true,
      })
      expect(made.status).toBe(202)
      const { id } = (await made.json()) as { id: string }
      const show = async () =>
        (await (await host.fetch(`/api/runs/${id}`)).json()) as Record<string, unknown> & { state: string }
      const run = await eventually(
        async () => {
          const now = await show()
          return now.state === 'ended' && now
        },
        { what: 'the run to end', intervalMs: 200 },
      )
      const events = await (await host.fetch(`/api/runs/${id}/events`)).text()
      const diff = await (await host.fetch(`/api/runs/${id}/diff`)).text()
      // The search did run, and saw where the gateway is.
      expect(found).toContain('ANTHROPIC_BASE_URL=http://127.0.0.1:3129')
      expect(found).toContain('remote.origin.url=https://git.example/one')
      expect(found).not.toContain('canary-e2e')
      expect(diff).toContain('hello.txt')
      for (const text of [JSON.stringify(run), events, diff, host.output()]) expect(text).not.toMatch(CANARY)
      const logs = readdirSync(data, { recursive: true, encoding: 'utf8' }).filter((name) =>
        name.endsWith('.log'),
      )
      expect(logs.length).toBeGreaterThan(0)
      for (const log of logs) expect(readFileSync(join(data, log), 'utf8'), log).not.toMatch(CANARY)
      // Git's token was used, but outside.
      expect(server.requests.some(({ authorization }) => authorization?.startsWith('Basic ') === true)).toBe(
        true,
      )
    },
  )
})
