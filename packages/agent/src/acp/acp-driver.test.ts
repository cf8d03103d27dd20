import { describe, expect, test } from 'bun:test'
import { DrivenAgent } from '../claude/claude-driver.fixture.ts'
import { ClaudeDriver } from '../claude/claude-driver.ts'
import { deriveEvents } from '../journal.ts'
import { AcpDriver } from './acp-driver.ts'

type Start = ConstructorParameters<typeof DrivenAgent>[0]

const update = (update: Record<string, unknown>): unknown => ({
  jsonrpc: '2.0',
  method: 'session/update',
  params: { sessionId: 'ses_1', update },
})
const OPTIONS = [
  { optionId: 'once', kind: 'allow_once', name: 'Allow once' },
  { optionId: 'always', kind: 'allow_always', name: 'Always allow' },
  { optionId: 'reject', kind: 'reject_once', name: 'Reject' },
]
const permission = (id: number, call: Record<string, unknown>): unknown => ({
  jsonrpc: '2.0',
  id,
  method: 'session/request_permission',
  params: { sessionId: 'ses_1', toolCall: call, options: OPTIONS },
})
const text = (type: string, value: string): unknown =>
  update({ sessionUpdate: type, content: { type: 'text', text: value } })
const CALL = { toolCallId: 'c1', title: 'bash', kind: 'execute', rawInput: { command: 'ls' } }

/** An agent whose program has opened a session and works on the task. */
function begin(start: Start = {}): DrivenAgent {
  const agent = new DrivenAgent(start, AcpDriver)
  agent.on({ kind: 'started' })
  agent.line({ jsonrpc: '2.0', id: 1, result: { protocolVersion: 1, agentCapabilities: {} } })
  agent.line({ jsonrpc: '2.0', id: 2, result: { sessionId: 'ses_1' } })
  return agent
}

const ended = (id: number, stopReason = 'end_turn'): unknown => ({
  jsonrpc: '2.0',
  id,
  result: { stopReason },
})

describe('an agent of the Agent Client Protocol', () => {
  test('is initialized, gets a session in the workspace, then the task', () => {
    const agent = begin()
    expect(agent.written).toEqual([
      expect.objectContaining({ id: 1, method: 'initialize' }),
      expect.objectContaining({
        id: 2,
        method: 'session/new',
        params: { cwd: '/workspace', mcpServers: [] },
      }),
      expect.objectContaining({
        id: 3,
        method: 'session/prompt',
        params: { sessionId: 'ses_1', prompt: [{ type: 'text', text: 'Do it' }] },
      }),
    ])
    expect([agent.driver.state, agent.driver.agentSessionId]).toEqual(['turn', 'ses_1'])
  })

  test('continues an earlier session, of which nothing is repeated', () => {
    const agent = new DrivenAgent({ resume: 'ses_0', isInteractive: true }, AcpDriver)
    agent.on({ kind: 'started' })
    agent.line({
      jsonrpc: '2.0',
      id: 1,
      result: { protocolVersion: 1, agentCapabilities: { loadSession: true } },
    })
    expect(agent.written.at(-1)).toMatchObject({ method: 'session/load', params: { sessionId: 'ses_0' } })
    agent.line(text('agent_message_chunk', 'Old answer'))
    agent.line({ jsonrpc: '2.0', id: 2, result: {} })
    agent.line(text('agent_message_chunk', 'New answer'))
    agent.line(ended(3))
    expect(agent.driver.agentSessionId).toBe('ses_0')
    expect(agent.eventsOf('text').map((event) => event.text)).toEqual(['New answer'])
  })

  test.each([
    ['that it does not know', { loadSession: true }, { id: 2, error: { code: 1, message: 'unknown' } }],
    ['without being able to', {}, undefined],
  ])('fails before it reads anything when it is to continue a session %s', (_, capabilities, response) => {
    const agent = new DrivenAgent({ resume: 'ses_0', isInteractive: true }, AcpDriver)
    agent.on({ kind: 'started' })
    agent.line({ jsonrpc: '2.0', id: 1, result: { protocolVersion: 1, agentCapabilities: capabilities } })
    if (response !== undefined) agent.line({ jsonrpc: '2.0', ...response })
    expect(agent.driver.stopping).toMatchObject({ reason: 'failed' })
    agent.on({ kind: 'exit', code: 0, signal: null })
    expect(agent.written.map(({ method }) => method)).not.toContain('session/prompt')
    expect(agent.driver.outcome).toMatchObject({ status: 'failed' })
  })

  test('gets the system prompt with the first message', () => {
    const agent = begin({ systemPrompt: 'Be brief', isInteractive: true })
    agent.line(ended(3))
    agent.on({ kind: 'message', id: 'm', text: 'And then', by: 'ann' })
    const prompts = agent.written.flatMap(({ method, params }) =>
      method === 'session/prompt' ? [params] : [],
    )
    expect(prompts).toMatchObject([
      { prompt: [{ text: 'Be brief' }, { text: 'Do it' }] },
      { prompt: [{ text: 'And then' }] },
    ])
  })

  test('reports text, tools and edited files, and ends with the last text', () => {
    const agent = begin()
    agent.line(text('agent_thought_chunk', 'Hm'))
    agent.line(text('agent_message_chunk', 'I '))
    agent.line(text('agent_message_chunk', 'look'))
    agent.line(update({ ...CALL, sessionUpdate: 'tool_call', status: 'pending', rawInput: {} }))
    agent.line(update({ ...CALL, sessionUpdate: 'tool_call_update', status: 'in_progress' }))
    agent.line(
      update({
        sessionUpdate: 'tool_call_update',
        toolCallId: 'c1',
        status: 'completed',
        content: [{ type: 'content', content: { type: 'text', text: 'a.txt' } }],
      }),
    )
    agent.line(
      update({
        sessionUpdate: 'tool_call',
        toolCallId: 'c2',
        title: 'write',
        kind: 'edit',
        status: 'completed',
        rawInput: { filePath: '/workspace/b.txt', content: 'hi' },
        content: [{ type: 'diff', path: '/workspace/b.txt', oldText: null, newText: 'hi' }],
      }),
    )
    agent.line(text('agent_message_chunk', 'Done'))
    agent.line(ended(3))
    agent.on({ kind: 'exit', code: 0, signal: null })
    const shown = agent.events.filter(({ type }) =>
      ['text', 'tool_call', 'tool_result', 'file_change'].includes(type),
    )
    expect(shown).toEqual([
      { type: 'text', text: 'Hm', thinking: true },
      { type: 'text', text: 'I look' },
      { type: 'tool_call', id: 'c1', name: 'Bash', title: 'Bash: ls', input: { command: 'ls' } },
      { type: 'tool_result', id: 'c1', name: 'Bash', isError: false, content: 'a.txt' },
      {
        type: 'tool_call',
        id: 'c2',
        name: 'Write',
        title: 'Write: /workspace/b.txt',
        input: { file_path: '/workspace/b.txt', content: 'hi' },
      },
      { type: 'tool_result', id: 'c2', name: 'Write', isError: false, content: '' },
      { type: 'file_change', path: 'b.txt', action: 'create' },
      { type: 'text', text: 'Done' },
    ])
    expect(agent.driver.outcome).toMatchObject({ status: 'completed', summary: 'Done' })
  })

  test('its plan and its todo tool are the todo list', () => {
    const agent = begin()
    agent.line(
      update({ sessionUpdate: 'plan', entries: [{ content: 'a', status: 'pending', priority: 'high' }] }),
    )
    agent.line(
      update({
        sessionUpdate: 'tool_call',
        toolCallId: 't',
        title: 'todowrite',
        kind: 'other',
        status: 'in_progress',
        rawInput: { todos: [{ content: 'b', status: 'completed' }] },
      }),
    )
    expect(agent.events.filter(({ type }) => type === 'todo')).toEqual([
      { type: 'todo', items: [{ id: '1', content: 'a', status: 'pending' }] },
      { type: 'todo', items: [{ id: '1', content: 'b', status: 'completed' }] },
    ])
  })

  test('asks a person, whose answer selects an option', () => {
    const answers = [
      [{ decision: 'allow' }, 'once'],
      [{ decision: 'allow', acceptsEdits: true }, 'always'],
      [{ decision: 'deny', message: 'No' }, 'reject'],
    ] as const
    for (const [answer, optionId] of answers) {
      const agent = begin({ permission: 'ask' })
      agent.line(permission(7, CALL))
      expect(agent.driver.pendingApprovals).toMatchObject([
        { requestId: 'acp-7', kind: 'permission', tool: { name: 'Bash', input: { command: 'ls' } } },
      ])
      agent.on({ kind: 'approval', requestId: 'acp-7', by: 'ann', ...answer })
      expect(agent.written.at(-1)).toEqual({
        jsonrpc: '2.0',
        id: 7,
        result: { outcome: { outcome: 'selected', optionId } },
      })
    }
  })

  test('works without asking where the run allows it', () => {
    const agent = begin({ permission: 'auto' })
    agent.line(permission(7, CALL))
    expect(agent.written.at(-1)).toMatchObject({ id: 7, result: { outcome: { optionId: 'once' } } })
  })

  test('takes messages at the end of a turn', () => {
    const agent = begin({ isInteractive: true })
    agent.on({ kind: 'message', id: 'm', text: 'And then', by: 'ann' })
    expect(agent.driver.messageView('m')).toEqual({ id: 'm', receipt: 'queued' })
    agent.line(ended(3))
    expect(agent.written.at(-1)).toMatchObject({ method: 'session/prompt', id: 4 })
    expect(agent.driver.messageView('m')).toEqual({ id: 'm', receipt: 'started' })
    agent.line(ended(4))
    expect([agent.driver.messageView('m')?.receipt, agent.driver.state]).toEqual(['completed', 'idle'])
  })

  test('an interrupt cancels the turn and withdraws what it asked', () => {
    const agent = begin({ permission: 'ask' })
    agent.line(permission(7, CALL))
    agent.on({ kind: 'interrupt' })
    expect(agent.written.slice(-2)).toEqual([
      { jsonrpc: '2.0', id: 7, result: { outcome: { outcome: 'cancelled' } } },
      { jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: 'ses_1' } },
    ])
    agent.line(ended(3, 'cancelled'))
    expect([agent.driver.state, agent.driver.pendingApprovals.length]).toEqual(['idle', 0])
  })

  test('may write files that it reports, and is refused everything else', () => {
    const agent = begin()
    agent.line({ jsonrpc: '2.0', id: 8, method: 'fs/write_text_file', params: { path: '/x', content: '' } })
    expect(agent.written.at(-1)).toEqual({ jsonrpc: '2.0', id: 8, result: null })
    agent.line({ jsonrpc: '2.0', id: 'a', method: 'terminal/create', params: {} })
    expect(agent.written.at(-1)).toMatchObject({ id: 'a', error: { code: -32601 } })
  })

  test.each([
    [{ id: 1, error: { code: 1, message: 'no key' } }, 'initialize: no key'],
    [
      { id: 1, result: { protocolVersion: 2 } },
      'The agent does not speak version 1 of the Agent Client Protocol',
    ],
  ])('fails when it cannot be started: %j', (response, message) => {
    const agent = new DrivenAgent({}, AcpDriver)
    agent.on({ kind: 'started' })
    agent.line({ jsonrpc: '2.0', ...response })
    agent.on({ kind: 'exit', code: 0, signal: null })
    expect(agent.driver.outcome).toMatchObject({ status: 'failed', message })
  })

  test('never throws on what the program writes', () => {
    const agent = begin()
    for (const value of [
      {},
      { id: 99, result: {} },
      { method: 'session/update' },
      { method: 'session/update', params: { update: { sessionUpdate: 'tool_call_update' } } },
      { method: 'session/request_permission', id: null },
      { method: 'x', id: { a: 1 } },
      [],
      'text',
    ])
      agent.line(value)
    expect(agent.driver.state).not.toBe('collecting')
  })

  test('the journal yields the same events', () => {
    const agent = begin({ permission: 'ask', isInteractive: true })
    agent.line(text('agent_message_chunk', 'Hi'))
    agent.line(permission(7, CALL))
    agent.on({ kind: 'approval', requestId: 'acp-7', by: 'ann', decision: 'allow' })
    agent.on({ kind: 'message', id: 'm', text: 'And then', by: 'ann' })
    agent.line(ended(3))
    agent.line(ended(4))
    agent.on({ kind: 'exit', code: 0, signal: null })
    const derived = [...deriveEvents(agent.journal, new ClaudeDriver(agent.options))]
    expect(derived.map(({ event }) => event)).toEqual(agent.events)
    expect(derived.map(({ seq }) => seq)).toEqual(agent.events.map((_, at) => at + 1))
  })
})
