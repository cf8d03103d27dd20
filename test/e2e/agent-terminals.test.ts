import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import {
  callTool,
  type FakeAnthropic,
  inTurns,
  openFakeAnthropic,
  type Reply,
  say,
  type Script,
} from '@sandwire/testing/fake-anthropic'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentClient } from './support/agents/agent-client.ts'
import { findClaude } from './support/agents/real-agents.ts'
import { Attached } from './support/attached.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

const claude = await findClaude()
if (claude.problem !== undefined) console.error(`terminals of the real claude: skipped, ${claude.problem}`)
const TOKEN = 'grant-of-the-run-0123456789'
/** Generous, for a loaded machine. */
const WAIT_MS = 60_000
const PASSWORD = 'hunter2-correct-horse'

const call = (tool: string, input: object): Reply => callTool(`mcp__terminals__terminal_${tool}`, input)

interface SessionView {
  readonly id: string
  readonly agentRun?: string
  readonly state: string
}

async function drive(person: Attached): Promise<void> {
  person.handle.take()
  await eventually(() => person.handle.role === 'driver', { what: 'control' })
}

describe.skipIf(claude.problem !== undefined)('terminals that the real claude shares with people', () => {
  const state = mkdtempSync(join(tmpdir(), 'agent-terminals-'))
  const home = mkdtempSync(join(state, 'home-'))
  let sandboxd: RunningSandboxd
  let agents: AgentClient
  let api: FakeAnthropic
  let runs = 0

  beforeAll(async () => {
    api = await openFakeAnthropic({ script: inTurns(say('Hello')), key: TOKEN })
    sandboxd = await startSandboxd({ args: ['--state', state], env: { HOME: home } })
    agents = new AgentClient(sandboxd)
  })
  afterAll(async () => {
    await sandboxd.stop()
    await api[Symbol.asyncDispose]()
    rmSync(state, { recursive: true, force: true })
  })

  /** What each tool call returned, and what each step of the script waits for before it answers. */
  async function start(
    steps: readonly (Reply | (() => Promise<Reply>))[],
  ): Promise<{ readonly id: string; readonly results: string[] }> {
    const results: string[] = []
    const script: Script = ({ isSide, toolResults, lastToolResult }) => {
      if (isSide) return say('Title')
      if (toolResults > results.length) results.push(lastToolResult)
      const step = steps[Math.min(toolResults, steps.length - 1)] ?? say('Done')
      return typeof step === 'function' ? step() : step
    }
    api.use(script)
    const id = `terminals-${(runs += 1)}`
    await agents.start(id, [], {
      program: claude.problem === undefined ? claude.program : '',
      task: 'Do it',
      env: { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_AUTH_TOKEN: TOKEN },
      secrets: [TOKEN],
      terminals: true,
    })
    return { id, results }
  }

  /** Everything that is stored about a run, and claude's own transcripts. */
  async function recorded(id: string): Promise<string> {
    const lines = await (await sandboxd.fetch(`/agents/${id}/events?format=lines&limit=1000`)).text()
    const found = Bun.spawnSync([
      'grep',
      '-rhs',
      '',
      state,
      '--include=*.jsonl',
      '--include=journal',
      '--include=events',
    ])
    const events = JSON.stringify(await agents.events(id))
    return [lines, events, found.stdout.toString(), JSON.stringify(sandboxd.logs())].join('\n')
  }

  async function sessions(): Promise<readonly SessionView[]> {
    return ((await (await sandboxd.fetch('/sessions')).json()) as { sessions: SessionView[] }).sessions
  }

  /** A person who joins the terminal that a run has opened. */
  async function joinTerminal(id: string): Promise<Attached> {
    const session = await eventually(
      async () => (await sessions()).find(({ agentRun }) => agentRun === id)?.id ?? false,
      { what: 'the terminal of the run' },
    )
    return new Attached(sandboxd, { session }, { name: 'ann' }).isAttached()
  }

  test('are opened, typed into, waited on and read, and people see them live', async () => {
    const gate = Promise.withResolvers<void>()
    const { id, results } = await start([
      call('open', { command: 'sh', cols: 60, rows: 10 }),
      async () => {
        await gate.promise
        return call('type', { terminal: 't1', text: 'PS1=; echo $((6*7)) live\n' })
      },
      call('type', { terminal: 't1', text: 'sleep 0.3; echo $((6*8)); exit 3', keys: ['enter'] }),
      call('wait', { terminal: 't1', until: 'exit', seconds: 20 }),
      call('read', { terminal: 't1', fromRow: 1, rows: 5 }),
      call('read', { terminal: 't9' }),
      call('list', {}),
      say('All done'),
    ])
    await using person = await joinTerminal(id)
    const agent = await eventually(
      () => person.presences.at(-1)?.attachments.find((each) => each.agent === true) ?? false,
      { what: 'presence of the agent' },
    )
    expect(agent).toMatchObject({ name: 'claude', role: 'driver', connected: true })
    gate.resolve()
    await person.waitFor('42 live')
    expect(await agents.result(id)).toMatchObject({ status: 'completed', summary: 'All done' })
    expect(results[0]).toContain('Terminal t1 ("sh", session ')
    expect(results[1]).toContain('you drive; also here: "ann"')
    expect(results[1]).toEndWith('\n42 live')
    expect(results[3]).toStartWith('Waited until exit.\n')
    expect(results[3]).toContain('ended with code 3')
    expect(results[4]).toContain('\n48')
    expect(results[5]).toContain('You have no terminal "t9"; open are t1')
    expect(results[6]).toContain('Terminal t1')
  })

  test('refuse the typing of the agent once a person drives, at an exact byte', async () => {
    const gate = Promise.withResolvers<void>()
    // Reads nothing until `go` says how many bytes to read.
    const script = 'stty raw echo; until [ -s go ]; do sleep 0.02; done; head -c "$(cat go)" > typed'
    const text = 'abcdefghijklmno '.repeat(1_000)
    const { id, results } = await start([
      call('open', { command: 'sh', args: ['-c', script] }),
      async () => {
        await gate.promise
        return call('type', { terminal: 't1', text })
      },
      call('type', { terminal: 't1', text: 'never' }),
      call('wait', { terminal: 't1', until: 'exit', seconds: 30 }),
      say('Understood'),
    ])
    await using person = await joinTerminal(id)
    gate.resolve()
    // The terminal takes 4 KiB, and the agent waits with the rest.
    await person.waitFor('klmno abcd')
    await drive(person)
    await eventually(() => results.length >= 3, { what: 'the refusals', timeoutMs: WAIT_MS })
    const refusal = /^(\d+) of 16000 bytes were typed\. "ann" drives this terminal/
    const accepted = Number(refusal.exec(results[1] ?? '')?.[1])
    expect(accepted).toBeGreaterThan(0)
    expect(accepted).toBeLessThan(16_000)
    expect(results[2]).toStartWith('0 of 5 bytes were typed. "ann" drives')
    await person.send('PERSON')
    writeFileSync(join(sandboxd.workspace, 'go'), String(accepted + 6))
    expect(await agents.result(id)).toMatchObject({ status: 'completed' })
    const typed = readFileSync(join(sandboxd.workspace, 'typed'), 'utf8')
    expect(typed).toBe(`${text.slice(0, accepted)}PERSON`)
    for (const name of ['go', 'typed']) rmSync(join(sandboxd.workspace, name))
  })

  test('hide private input, which is in no journal, event, log or transcript', async () => {
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const after = (promise: Promise<void>, reply: Reply) => async () => {
      await promise
      return reply
    }
    const { id, results } = await start([
      call('open', { command: 'sh', args: ['-c', 'printf "token? "; read token; echo stored; cat'] }),
      after(begun.promise, call('read', { terminal: 't1' })),
      call('type', { terminal: 't1', text: 'x' }),
      after(ended.promise, call('read', { terminal: 't1', fromRow: -100 })),
      call('wait', { terminal: 't1', until: 'control', seconds: 30 }),
      call('type', { terminal: 't1', text: 'echoed\n' }),
      call('wait', { terminal: 't1', until: 'text', text: 'echoed', seconds: 30 }),
      say('All done'),
    ])
    await using person = await joinTerminal(id)
    await drive(person)
    person.handle.setPrivate(true)
    await eventually(() => person.presences.at(-1)?.private !== null, { what: 'private input' })
    await person.send(`${PASSWORD}\n`)
    await person.waitFor('stored')
    begun.resolve()
    await eventually(() => results.length >= 3, { what: 'the refusals', timeoutMs: WAIT_MS })
    person.handle.setPrivate(false)
    await eventually(() => person.presences.at(-1)?.private === null, { what: 'the end of private input' })
    ended.resolve()
    await eventually(() => results.length >= 4, { what: 'the screen', timeoutMs: WAIT_MS })
    const agent = person.presences.at(-1)?.attachments.find((each) => each.agent === true)
    person.handle.give(agent?.id ?? '')
    expect(await agents.result(id)).toMatchObject({ status: 'completed' })
    expect(results[1]).toContain('A person types something private')
    expect(results[1]).not.toContain('token?')
    expect(results[2]).toStartWith('0 of 1 bytes were typed. A person types something private')
    expect(results[3]).toContain('Output was left out')
    expect(results[4]).toStartWith('Waited until control.')
    expect(results[6]).toContain('echoed')
    expect(person.text).toContain(PASSWORD)
    const everything = await recorded(id)
    expect(everything).toContain('echoed')
    expect(everything).not.toContain(PASSWORD)
  })

  test('let only people answer when a program reads a password', async () => {
    const script = 'stty -echo; printf "password: "; read word; stty echo; echo "length ${#word}"; cat'
    const { id, results } = await start([
      call('open', { command: 'sh', args: ['-c', script] }),
      call('wait', { terminal: 't1', until: 'text', text: 'password:', seconds: 30 }),
      call('type', { terminal: 't1', text: 'guess\n' }),
      call('ask', { terminal: 't1' }),
      call('wait', { terminal: 't1', until: 'text', text: 'length', seconds: 30 }),
      call('close', { terminal: 't1' }),
      say('All done'),
    ])
    await using person = await joinTerminal(id)
    await eventually(() => results.length >= 3, { what: 'the refusal', timeoutMs: WAIT_MS })
    expect(results[1]).toStartWith('Waited until text.')
    expect(results[1]).toContain('The program reads a password')
    expect(results[2]).toStartWith('0 of 6 bytes were typed. The program reads a password')
    await drive(person)
    await person.send(`${PASSWORD}\n`)
    expect(await agents.result(id)).toMatchObject({ status: 'completed' })
    expect(results[4]).toContain(`length ${PASSWORD.length}`)
    expect(results[5]).toBe('You left terminal t1, which a person drives.')
    expect(await recorded(id)).not.toContain(PASSWORD)
    // The person goes on without the agent.
    await person.send('still here\n')
    await person.waitFor('still here\r\nstill here')
    expect(person.presences.at(-1)?.attachments.filter((each) => each.agent === true)).toEqual([])
  })

  test('end with the run, before its diff is made', async () => {
    const script = 'trap "" HUP; while :; do date +%N > ticking; sleep 0.05; done'
    const { id } = await start([
      call('open', { command: 'sh', args: ['-c', script] }),
      call('open', { command: 'cat' }),
      say('All done'),
    ])
    await using person = await joinTerminal(id)
    const result = await agents.result(id)
    expect(result.diff?.files).toMatchObject([{ path: 'ticking', action: 'create' }])
    const running = (await sessions()).filter(({ agentRun, state }) => agentRun === id && state === 'running')
    expect(running).toEqual([])
    expect((await person.exit).signal).not.toBeNull()
    const content = readFileSync(join(sandboxd.workspace, 'ticking'), 'utf8')
    expect(await agents.diff(id)).toContain(`+${content}`)
    rmSync(join(sandboxd.workspace, 'ticking'))
  })

  test('are bounded in number', async () => {
    const open = call('open', { command: 'cat' })
    const { id, results } = await start([...Array.from({ length: 9 }, () => open), say('All done')])
    expect(await agents.result(id)).toMatchObject({ status: 'completed' })
    expect(results[7]).toContain('Terminal t8')
    expect(results[8]).toBe('8 terminals are open: close one with terminal_close')
  })
})
