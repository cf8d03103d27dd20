import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  callTool,
  type FakeAnthropic,
  openFakeAnthropic,
  say,
  type Script,
} from '@sandwire/testing/fake-anthropic'
import { eventually } from '@sandwire/testing'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MAIN } from './cli-runner.ts'
import { AgentDeployment } from './support/agents/agent-deployment.ts'
import { findClaude } from './support/agents/real-agents.ts'
import { openTerminal } from './support/terminal.ts'

const claude = await findClaude()
if (claude.problem !== undefined) console.error(`agents on a host: skipped, ${claude.problem}`)

const WAIT_MS = 60_000
const ESCAPE = '\x1d'

/** Writes a file, works until a message comes, writes another. */
const script: Script = ({ isSide, toolResults, body }) => {
  if (isSide) return say('Title')
  const all = JSON.stringify(body)
  if (toolResults === 0) return callTool('Write', { file_path: '/workspace/early.txt', content: 'early\n' })
  if (toolResults === 1) return callTool('Bash', { command: 'echo half > half.txt; sleep 3' })
  if (all.includes('forever')) return callTool('Bash', { command: 'sleep 600' })
  return say(`All done${all.includes('use tabs') ? ', with tabs' : ''}`)
}

describe.skipIf(claude.problem !== undefined)('a run', () => {
  let api: FakeAnthropic
  let agents: AgentDeployment

  beforeAll(async () => {
    api = await openFakeAnthropic({ script })
    agents = await AgentDeployment.open(api.url)
  }, WAIT_MS)
  afterAll(async () => {
    await agents[Symbol.asyncDispose]()
    await api[Symbol.asyncDispose]()
  }, WAIT_MS)

  /** Waits until the agent is in the middle of its work. */
  const untilBusy = (run: string): Promise<unknown> =>
    eventually(
      async () => {
        const events = await agents.events(run).catch(() => [])
        return events.some(({ event }) => event.type === 'tool_call' && event.name === 'Bash')
      },
      { what: 'the agent to work', timeoutMs: WAIT_MS, intervalMs: 200 },
    )

  /** The events have no hole, no repetition and one end. */
  async function checkEvents(run: string): Promise<void> {
    const events = await agents.events(run)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    expect(events.filter(({ event }) => event.type === 'complete')).toHaveLength(1)
    expect(events.filter(({ event }) => event.type === 'result')).toHaveLength(1)
    expect(events.at(-1)?.event.type).toBe('complete')
    const early = events.filter(({ event }) => event.type === 'file_change' && event.path === 'early.txt')
    expect(early).toHaveLength(1)
  }

  test(
    'survives kill -9 of workerd and of the host: every event once, and the diff',
    async () => {
      const run = await agents.start('Work')
      await untilBusy(run.id)
      await agents.deployment.killWorkerd()
      await agents.deployment.killHost()
      await agents.deployment.restart()
      const ended = await agents.ended(run.id)
      expect(ended).toMatchObject({ outcome: 'completed', result: { diffProblem: null } })
      expect(ended.result?.filesChanged).toEqual(['early.txt', 'half.txt'])
      expect(await agents.diff(run.id)).toContain('+half')
      await checkEvents(run.id)
    },
    2 * WAIT_MS,
  )

  test(
    'has a diff after kill -9 of sandboxd and after a stop of the sandbox, and is lost only with its files',
    async () => {
      const runs = await Promise.all([1, 2, 3].map(() => agents.start('Work forever')))
      const [crashed, stopped, lost] = runs
      if (crashed === undefined || stopped === undefined || lost === undefined) throw new Error('No runs')
      await Promise.all(runs.map(({ id }) => untilBusy(id)))
      process.kill(agents.deployment.sandboxd(crashed.sandbox), 'SIGKILL')
      expect((await agents.send('POST', `/api/sandboxes/${stopped.sandbox}/stop`)).status).toBeLessThan(300)
      await agents.deployment.destroy(lost.sandbox)
      for (const [run, outcome] of [[crashed, 'crashed'] as const, [stopped, 'aborted'] as const]) {
        const ended = await agents.ended(run.id)
        expect(ended).toMatchObject({ outcome, result: { diffProblem: null } })
        expect(ended.result?.filesChanged).toContain('early.txt')
        expect(await agents.diff(run.id)).toContain('+early')
        await checkEvents(run.id)
      }
      expect((await agents.ended(lost.id)).outcome).toBe('lost')
      const events = await agents.events(lost.id)
      expect(events.some(({ event }) => event.type === 'tool_call')).toBeTrue()
      expect(events.at(-1)?.event.type).toBe('complete')
    },
    2 * WAIT_MS,
  )

  test(
    'is steered from a terminal: approval, message, leaving and coming back, diff, apply',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'agent-tree-'))
      const git = (...args: string[]) => Bun.spawnSync(['git', ...args], { cwd: folder })
      git('init', '-q')
      writeFileSync(join(folder, 'kept.txt'), 'kept\n')
      git('add', '.')
      git('-c', 'user.name=a', '-c', 'user.email=a@a', 'commit', '-qm', 'first')
      const url = `http://localhost:${agents.deployment.host.port}`
      const open = (...argv: string[]) =>
        openTerminal({
          argv: [process.execPath, MAIN, ...argv],
          cwd: folder,
          cols: 120,
          rows: 50,
          env: { ...agents.deployment.env, SBX_URL: url, SBX_TOKEN: undefined },
        })
      try {
        let run = ''
        {
          await using terminal = open('agent', 'Work', '--ask')
          await terminal.waitFor(/\? Allow Write.*early\.txt/, WAIT_MS)
          terminal.send('y\r')
          await terminal.waitFor(/\? Allow Bash/, WAIT_MS)
          terminal.send(ESCAPE)
          expect(await terminal.exit).toEqual({ code: 0, signal: null })
          run = /run events (\S+)/.exec(terminal.rawOutput().replaceAll(/\s+/g, ' '))?.[1] ?? ''
          expect(run).not.toBe('')
        }
        {
          await using terminal = open('run', 'events', run)
          await terminal.waitFor(/\? Allow Bash/, WAIT_MS)
          terminal.send('y\r')
          terminal.send('use tabs\r')
          await terminal.waitFor('< use tabs', WAIT_MS)
          await terminal.waitFor('All done, with tabs', WAIT_MS)
          expect(await terminal.exit).toEqual({ code: 0, signal: null })
          expect(terminal.rawOutput()).toContain('git apply --binary')
        }
        await using terminal = open('agent', 'Work again')
        await terminal.waitFor(/2 files changed[^]*Apply these changes/, 2 * WAIT_MS)
        terminal.send('y\r')
        expect(await terminal.exit).toEqual({ code: 0, signal: null })
        expect(readFileSync(join(folder, 'half.txt'), 'utf8')).toBe('half\n')
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
    3 * WAIT_MS,
  )
})
