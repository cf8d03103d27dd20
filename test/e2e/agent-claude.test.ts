import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { AgentStart, RunEvent } from '@sandwire/agent'
import {
  callTool,
  type FakeAnthropic,
  inTurns,
  openFakeAnthropic,
  say,
  type Script,
  withFaults,
} from '@sandwire/testing/fake-anthropic'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentClient } from './support/agents/agent-client.ts'
import { findClaude } from './support/agents/real-agents.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

const claude = await findClaude()
if (claude.problem !== undefined) console.error(`the real claude: skipped, ${claude.problem}`)
const TOKEN = 'grant-of-the-run-0123456789'

describe.skipIf(claude.problem !== undefined)('the real claude', () => {
  const state = mkdtempSync(join(tmpdir(), 'agent-claude-'))
  let sandboxd: RunningSandboxd
  let agents: AgentClient
  let api: FakeAnthropic
  let runs = 0

  beforeAll(async () => {
    api = await openFakeAnthropic({ script: inTurns(say('Hello')), key: TOKEN })
    sandboxd = await startSandboxd({
      args: ['--state', state],
      env: { HOME: mkdtempSync(join(state, 'home-')) },
    })
    agents = new AgentClient(sandboxd)
  })
  afterAll(async () => {
    await sandboxd.stop()
    await api[Symbol.asyncDispose]()
    rmSync(state, { recursive: true, force: true })
  })

  async function start(script: Script, settings: Partial<AgentStart> = {}): Promise<string> {
    api.use(script)
    const id = `claude-${(runs += 1)}`
    await agents.start(id, [], {
      program: claude.problem === undefined ? claude.program : '',
      task: 'Do it',
      env: { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_AUTH_TOKEN: TOKEN },
      secrets: [TOKEN],
      ...settings,
    })
    return id
  }

  const typesOf = async (id: string): Promise<readonly RunEvent['type'][]> =>
    (await agents.events(id)).map(({ event }) => event.type)

  test('works on a task: todo list, files, commands, result', async () => {
    const todos = [{ content: 'Write it', status: 'in_progress', activeForm: 'Writing it' }]
    const id = await start(
      inTurns(
        callTool('TodoWrite', { todos }),
        callTool('Write', { file_path: join(sandboxd.workspace, 'hello.txt'), content: 'hello\n' }),
        callTool('Bash', { command: 'env; mv hello.txt moved.txt' }),
        say('All done'),
      ),
    )
    const result = await agents.result(id)
    expect(result).toMatchObject({ status: 'completed', summary: 'All done', exitCode: 0 })
    expect(result.usage).toMatchObject({ turns: 4 })
    expect(result.diff?.files).toMatchObject([{ path: 'moved.txt', action: 'create' }])
    expect(new Set(await typesOf(id))).toEqual(
      new Set<RunEvent['type']>([
        'status',
        'tool_call',
        'todo',
        'usage',
        'tool_result',
        'file_change',
        'text',
        'stdout',
        'result',
        'complete',
      ]),
    )
    const all = JSON.stringify([await agents.events(id), result])
    expect(all).toContain('ANTHROPIC_AUTH_TOKEN=[redacted]')
    expect(all).not.toContain(TOKEN)
    rmSync(join(sandboxd.workspace, 'moved.txt'))
  })

  test('asks before it runs a command, and reads a message in mid-turn', async () => {
    const heard = (request: { readonly userTexts: readonly string[]; readonly body: unknown }): boolean =>
      JSON.stringify(request.body).includes('use tabs')
    const id = await start(
      (request) =>
        request.isSide
          ? say('Title')
          : request.toolResults === 0
            ? callTool('Bash', {
                command: 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; touch allowed',
              })
            : say(heard(request) ? 'Heard it' : 'Heard nothing'),
      { permission: 'ask' },
    )
    const { requestId } = await agents.event(id, 'awaiting_input')
    expect((await agents.view(id)).state).toBe('awaiting')
    await agents.send('POST', `/${id}/approvals`, { requestId, decision: 'allow', by: 'someone' })
    await agents.send('POST', `/${id}/messages`, { id: 'm', text: 'use tabs', by: 'someone' })
    const result = await agents.result(id)
    expect(result).toMatchObject({ status: 'completed', summary: 'Heard it' })
    expect(result.diff?.files).toMatchObject([{ path: 'allowed' }])
    expect(
      (await agents.send('POST', `/${id}/messages`, { id: 'm', text: 'use tabs', by: 'someone' })).body,
    ).toEqual({
      id: 'm',
      receipt: 'completed',
    })
    rmSync(join(sandboxd.workspace, 'allowed'))
  })

  test('is interrupted in the middle of an answer, and goes on with a message', async () => {
    const id = await start((request) =>
      request.userTexts.some((text) => text.includes('Go on'))
        ? say('Went on')
        : say('a long answer '.repeat(200), { delayMs: 50 }),
    )
    await agents.event(id, 'status', (event) => event.status === 'session')
    await agents.send('POST', `/${id}/interrupt`)
    await agents.event(id, 'awaiting_input', ({ kind }) => kind === 'message')
    await agents.send('POST', `/${id}/messages`, { id: 'm', text: 'Go on', by: 'someone' })
    expect(await agents.result(id)).toMatchObject({ status: 'completed', summary: 'Went on' })
  })

  test('survives an overloaded model API and a stream that is cut', async () => {
    const faults = [
      { kind: 'status', status: 529 },
      { kind: 'cut', afterEvents: 2 },
    ] as const
    const id = await start(withFaults(faults, inTurns(say('After all'))))
    expect(await agents.result(id)).toMatchObject({ status: 'completed', summary: 'After all' })
    const retries = (await agents.events(id)).filter(
      ({ event }) => event.type === 'status' && event.status === 'retry',
    )
    expect(retries.length).toBeGreaterThan(0)
  })

  test('ends as over budget when the gateway says so', async () => {
    const fault = { kind: 'status', status: 402, message: 'The budget of the run is spent' } as const
    const id = await start(withFaults([fault], inTurns(say('Never'))))
    const result = await agents.result(id)
    expect(result.status).toBe('budget')
    expect(result.message).toContain('The budget of the run is spent')
  })

  test('answers by a schema', async () => {
    const outputSchema = JSON.stringify({
      type: 'object',
      required: ['answer'],
      properties: { answer: { type: 'string' } },
    })
    const id = await start(inTurns(callTool('StructuredOutput', { answer: 'yes' }), say('Done')), {
      outputSchema,
      tools: ['Read'],
    })
    expect(await agents.result(id)).toMatchObject({ status: 'completed', structured: { answer: 'yes' } })
  })

  test.each(['auto', 'ask'] as const)(
    'reads the instructions of a repository whose settings name another model API, with permission "%s"',
    async (permission) => {
      const settings = join(sandboxd.workspace, '.claude')
      const instructions = join(sandboxd.workspace, 'CLAUDE.md')
      mkdirSync(settings)
      const env = { ANTHROPIC_BASE_URL: 'http://127.0.0.1:1', CLAUDE_CODE_USE_BEDROCK: '1' }
      writeFileSync(join(settings, 'settings.json'), JSON.stringify({ env, apiKeyHelper: 'echo other' }))
      writeFileSync(instructions, 'Indent with tabs, always.\n')
      const id = await start(
        ({ body }) => say(JSON.stringify(body).includes('Indent with tabs') ? 'With tabs' : 'Unknown'),
        { permission },
      )
      expect(await agents.result(id)).toMatchObject({ status: 'completed', summary: 'With tabs' })
      rmSync(settings, { recursive: true })
      rmSync(instructions)
    },
  )

  test('is stopped while it asks, with its diff', async () => {
    const id = await start(
      inTurns(callTool('Write', { file_path: join(sandboxd.workspace, 'x'), content: 'x' }), say('Done')),
      { permission: 'ask' },
    )
    await agents.event(id, 'awaiting_input')
    await agents.send('POST', `/${id}/stop`, { reason: 'aborted', message: 'By someone' })
    expect(await agents.result(id)).toMatchObject({
      status: 'aborted',
      diffProblem: null,
      diff: { files: [] },
    })
  })
})
