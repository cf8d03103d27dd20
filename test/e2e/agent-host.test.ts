import { expect, test } from 'bun:test'
import { callTool, inTurns, openFakeAnthropic, say } from '@sandwire/testing/fake-anthropic'
import { eventually } from '@sandwire/testing'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { findClaude } from './support/agents/real-agents.ts'
import { Attached } from './support/attached.ts'
import { startHost } from './support/control.ts'

const claude = await findClaude()
if (claude.problem !== undefined) console.error(`agents on a host: skipped, ${claude.problem}`)
const CANARY = 'sk-ant-canary-0123456789abcdef'
/** On the disk of the installed program, so that it can be linked. */
const CACHE = resolve(import.meta.dir, '../../.cache')

const SEARCH = `env; cat /proc/*/environ | tr '\\\\0' '\\\\n'; git config -l; grep -rs sk-ant ~ /workspace /tmp; ls -la /var/lib/sandwire; true`

interface SessionList {
  readonly sessions: readonly { readonly id: string; readonly agentRun?: string }[]
}

interface RunView {
  readonly id: string
  readonly state: string
  readonly result: {
    readonly status: string
    readonly tamperProof: boolean
    readonly filesChanged: readonly string[]
  } | null
}

test.skipIf(claude.problem !== undefined)(
  'a run on a real host returns its diff, and no event, file or log has the key (threat T2)',
  async () => {
    const data = mkdtempSync(join(CACHE, 'agent-host-'))
    const source = claude.problem === undefined ? claude.folder : ''
    mkdirSync(join(data, 'agents'))
    Bun.spawnSync(['cp', '-al', `${source}/.`, join(data, 'agents')])
    const script = inTurns(
      callTool('Bash', { command: SEARCH }),
      callTool('Write', { file_path: '/workspace/hello.txt', content: 'hello\n' }),
      callTool('Bash', { command: 'umask 077; echo private > private.txt' }),
      callTool('mcp__terminals__terminal_open', { command: 'sh', args: ['-c', 'env; id; cat'] }),
      callTool('mcp__terminals__terminal_wait', { terminal: 't1', until: 'text', text: 'until a person' }),
      say('All done'),
    )
    await using api = await openFakeAnthropic({ script, key: CANARY })
    try {
      await using host = await startHost({
        data,
        env: { ANTHROPIC_API_KEY: CANARY, ANTHROPIC_BASE_URL: api.url },
      })
      const post = async (path: string, body: unknown): Promise<unknown> => {
        const headers = { ...host.headers, 'content-type': 'application/json' }
        return (await host.fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })).json()
      }
      await post('/api/sandboxes', { name: 'dev', limits: { diskBytes: 256 * 1024 ** 2 } })
      const { id } = (await post('/api/runs', { sandbox: 'dev', task: 'Do it' })) as RunView
      // A person finds the agent's terminal among the sessions of the sandbox, and types into it after taking control.
      const session = await eventually(
        async () => {
          const { sessions } = (await (await host.fetch('/api/account/sessions')).json()) as SessionList
          return sessions.find(({ agentRun }) => agentRun === id)?.id ?? false
        },
        { what: 'the terminal of the agent', intervalMs: 200 },
      )
      await using person = await new Attached(
        { ...host, socketUrl: () => host.url },
        { session, take: true },
      ).isAttached()
      await person.send('wait until a person types\n')
      const run = await eventually(
        async () => {
          const view = (await (await host.fetch(`/api/runs/${id}`)).json()) as RunView
          return view.state === 'ended' && view
        },
        { what: 'the run to end', intervalMs: 200 },
      )
      expect(run.result).toMatchObject({ status: 'completed', tamperProof: process.getuid?.() === 0 })
      expect(run.result?.filesChanged).toEqual(expect.arrayContaining(['hello.txt', 'private.txt']))
      const diff = await (await host.fetch(`/api/runs/${id}/diff`)).text()
      expect(diff).toContain('+private')
      const events = await (
        await host.fetch(`/api/runs/${id}/events`, {
          headers: { ...host.headers, accept: 'application/json' },
        })
      ).text()
      expect(events).toContain('ANTHROPIC_AUTH_TOKEN=[redacted]')
      expect(events).toContain('uid=1000')
      expect(events).toContain('Waited until text.')
      const screen = Buffer.concat(person.screens.map(({ bytes }) => bytes)).toString() + person.text
      expect(screen).toContain('uid=1000')
      expect(screen).not.toContain('ANTHROPIC')
      expect([diff, events, JSON.stringify(run), host.output()].join('\n')).not.toContain(CANARY)
      // Its diff may be in the store of versions.
      const deleted = await host.fetch(`/api/runs/${id}`, { method: 'DELETE', headers: host.headers })
      expect(deleted.status).toBe(204)
      await host.stop()
      // Databases, logs, disk images and everything else that the server keeps.
      const found = Bun.spawnSync(['grep', '-rla', CANARY, data, '--exclude-dir=agents'])
      expect(found.stdout.toString()).toBe('')
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  },
)
