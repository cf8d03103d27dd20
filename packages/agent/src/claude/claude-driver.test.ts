import { describe, expect, test } from 'bun:test'
import {
  DrivenAgent,
  permission,
  result,
  SECRET,
  text,
  toolResult,
  toolUse,
} from './claude-driver.fixture.ts'

const answer = { kind: 'approval', decision: 'allow', by: 'someone' } as const

test('a turn becomes events, and its result ends the input', () => {
  const agent = new DrivenAgent()
  agent.begin()
  agent.line(text('Working'))
  agent.line(toolUse('t1', 'Write', { file_path: '/workspace/a.txt', content: 'x' }))
  agent.line(toolResult('t1', 'ok', { type: 'create', filePath: '/workspace/a.txt' }))
  agent.line(result())
  expect(agent.steps).toEqual(['end_input'])
  agent.on({ kind: 'exit', code: 0, signal: null })
  expect(agent.driver.outcome).toEqual({
    status: 'completed',
    message: null,
    summary: 'Done',
    structured: null,
    exitCode: 0,
    signal: null,
  })
  expect(agent.events.map(({ type }) => type)).toEqual([
    'status', // starting
    'status', // turn
    'status', // session
    'text',
    'stdout',
    'tool_call',
    'tool_result',
    'file_change',
    'usage',
    'status', // ending
    'status', // collecting
  ])
  expect(agent.written.map(({ type }) => type)).toEqual(['control_request', 'user'])
  expect(agent.driver.agentSessionId).toBe('s')
})

test('files outside the workspace are no changes of it', () => {
  const agent = new DrivenAgent()
  agent.begin()
  for (const [index, file] of ['/etc/passwd', '/workspace/../x', '/workspaces/x', '../x'].entries()) {
    agent.line(toolUse(`t${index}`, 'Write', { file_path: file, content: '' }))
    agent.line(toolResult(`t${index}`, 'ok', { type: 'create' }))
  }
  agent.line(toolUse('in', 'Edit', { file_path: './b/../c' }))
  agent.line(toolResult('in', 'ok', {}))
  agent.line(toolUse('failed', 'Edit', { file_path: '/workspace/d' }))
  agent.line(toolResult('failed', 'no', {}, true))
  expect(agent.eventsOf('file_change')).toEqual([{ type: 'file_change', path: 'c', action: 'modify' }])
})

test('both families of todo tools give the whole list', () => {
  const agent = new DrivenAgent()
  agent.begin()
  const todos = [
    { content: 'a', status: 'completed', activeForm: 'doing a' },
    { content: 'b', status: 'in_progress', activeForm: 'doing b' },
  ]
  agent.line(toolUse('t1', 'TodoWrite', { todos }))
  agent.line(toolUse('t2', 'TodoWrite', { todos }))
  expect(agent.eventsOf('todo')).toEqual([
    {
      type: 'todo',
      items: [
        { id: '1', content: 'a', status: 'completed' },
        { id: '2', content: 'b', status: 'in_progress' },
      ],
      active: 'doing b',
    },
  ])
  const tasks = new DrivenAgent()
  tasks.begin()
  tasks.line(toolUse('c', 'TaskCreate', { subject: 'a', description: 'x', activeForm: 'doing a' }))
  tasks.line(toolResult('c', 'ok', { task: { id: '7', subject: 'a' } }))
  tasks.line(toolUse('u', 'TaskUpdate', { taskId: '7', status: 'in_progress' }))
  tasks.line(toolResult('u', 'ok', { success: true }))
  tasks.line(toolUse('x', 'TaskUpdate', { taskId: '7', status: 'completed' }))
  tasks.line(toolResult('x', 'no', {}, true))
  tasks.line(toolUse('d', 'TaskUpdate', { taskId: '7', status: 'deleted' }))
  tasks.line(toolResult('d', 'ok', { success: true }))
  expect(tasks.eventsOf('todo')).toEqual([
    { type: 'todo', items: [{ id: '7', content: 'a', status: 'pending' }] },
    { type: 'todo', items: [{ id: '7', content: 'a', status: 'in_progress' }], active: 'doing a' },
    { type: 'todo', items: [] },
  ])
})

test('a plan has its steps, and accepting it allows edits', () => {
  const agent = new DrivenAgent({ permission: 'ask' })
  agent.begin()
  agent.line(
    toolUse('p', 'ExitPlanMode', { plan: '# Plan\n\n1. First\n   - detail\n2. Second\n- [x] Third' }),
  )
  expect(agent.eventsOf('plan')[0]?.steps).toEqual([
    { title: 'First', status: 'pending' },
    { title: 'Second', status: 'pending' },
    { title: 'Third', status: 'completed' },
  ])
  agent.line(permission('r', 'ExitPlanMode'))
  expect(agent.eventsOf('awaiting_input')[0]).toMatchObject({ kind: 'plan', requestId: 'r' })
  agent.on({ ...answer, requestId: 'r' })
  expect(JSON.stringify(agent.written.at(-1))).toContain('acceptEdits')
})

test('large results are cut, and secrets are in no effect, also when pieces divide them', () => {
  const agent = new DrivenAgent({ permission: 'ask' })
  agent.begin()
  agent.line(text(`a ${SECRET} b`))
  agent.line(`not json ${SECRET}`)
  agent.on({ kind: 'stderr', text: `${SECRET}\n` })
  agent.line(toolUse('t', 'Bash', { command: `echo ${SECRET}`, [SECRET]: [{ deep: SECRET }] }))
  agent.line(toolResult('t', `${'x'.repeat(32 * 1024 - 5)}${SECRET}${'y'.repeat(50_000)}`))
  agent.line(toolResult('t', [{ type: 'text', text: SECRET }, { type: 'image' }]))
  agent.line(permission('r', 'Bash', { command: SECRET }))
  agent.line(result({ result: SECRET }))
  agent.line({ type: 'stream_event', event: { type: 'message_start', message: { id: 'm' } } })
  const partial = (piece: string): object => ({
    type: 'stream_event',
    event: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: piece } },
  })
  for (const piece of ['x gra', 'nt-0123', '456789 y gran', 't']) agent.line(partial(piece))
  agent.line({ type: 'stream_event', event: { type: 'content_block_stop', index: 0 } })
  agent.on({ kind: 'exit', code: 0, signal: null })
  const shown = agent.effects.flatMap((effect) => (effect.kind === 'partial' ? [effect.partial.text] : []))
  expect(shown.join('')).toBe('x [redacted] y grant')
  expect(
    JSON.stringify([agent.events, shown, agent.driver.outcome, agent.driver.pendingApprovals]),
  ).not.toContain(SECRET)
  expect(agent.eventsOf('tool_result')[0]?.omittedChars).toBeGreaterThan(0)
  // The program itself gets its input back as it was.
  agent.on({ kind: 'tick' })
})

test('a permission that was allowed repeats the input as the program sent it', () => {
  const agent = new DrivenAgent({ permission: 'ask' })
  agent.begin()
  agent.line(permission('r', 'Bash', { command: SECRET }))
  agent.on({ ...answer, requestId: 'r' })
  expect(agent.written.at(-1)).toMatchObject({
    response: { request_id: 'r', response: { behavior: 'allow', updatedInput: { command: SECRET } } },
  })
})

test('a permission can be allowed with another input', () => {
  const agent = new DrivenAgent({ permission: 'ask' })
  agent.begin()
  agent.line(permission('r', 'Bash', { command: 'rm x' }))
  agent.on({ ...answer, requestId: 'r', updatedInput: '{"command":"ls"}' })
  expect(agent.written.at(-1)).toMatchObject({
    response: { response: { behavior: 'allow', updatedInput: { command: 'ls' } } },
  })
})

describe('approvals', () => {
  test('of several pending ones each is answered once', () => {
    const agent = new DrivenAgent({ permission: 'ask' })
    agent.begin()
    agent.line(permission('a', 'Bash', { command: 'x' }))
    agent.line(permission('b', 'Write', { file_path: 'y' }))
    expect(agent.driver.pendingApprovals.map(({ requestId }) => requestId)).toEqual(['a', 'b'])
    expect(agent.driver.state).toBe('awaiting')
    agent.on({ ...answer, requestId: 'b', decision: 'deny', message: 'No' })
    expect(agent.on({ ...answer, requestId: 'b', decision: 'deny', message: 'No' })).toEqual([])
    expect(() => agent.on({ ...answer, requestId: 'b' })).toThrow('answered already')
    expect(() => agent.on({ ...answer, requestId: 'c' })).toThrow('no such request')
    expect(agent.driver.approvalView('b')).toEqual({
      requestId: 'b',
      state: 'answered',
      decision: 'deny',
      by: 'someone',
    })
    agent.on({ ...answer, requestId: 'a' })
    expect(agent.driver.state).toBe('turn')
  })

  test('are denied at their deadline, and time limits wait for them', () => {
    const agent = new DrivenAgent({ permission: 'ask', limits: { idleMs: 1_000, approvalMs: 60_000 } })
    agent.begin()
    agent.line(permission('a', 'Bash'))
    agent.wait(59_000)
    expect(agent.driver.stopping).toBeUndefined()
    agent.wait(1_000)
    expect(agent.eventsOf('status').at(-2)).toMatchObject({ status: 'approval', outcome: 'expired' })
    expect(JSON.stringify(agent.written.at(-1))).toContain('"behavior":"deny"')
    expect(() => agent.on({ ...answer, requestId: 'a' })).toThrow('deadline')
    agent.wait(1_000)
    expect(agent.driver.stopping?.reason).toBe('timed_out')
  })

  test('are withdrawn by the agent and by the end of the run', () => {
    const agent = new DrivenAgent({ permission: 'ask' })
    agent.begin()
    agent.line(permission('a', 'Bash'))
    agent.line({ type: 'control_cancel_request', request_id: 'a' })
    expect(() => agent.on({ ...answer, requestId: 'a' })).toThrow('withdrawn')
    agent.line(permission('b', 'Bash'))
    agent.on({ kind: 'stop', reason: 'aborted', message: 'x' })
    expect(agent.driver.pendingApprovals).toEqual([])
    expect(() => agent.on({ ...answer, requestId: 'b' })).toThrow('withdrawn')
  })

  test('a question gets the chosen answers', () => {
    const agent = new DrivenAgent({ permission: 'ask' })
    agent.begin()
    const questions = [
      { question: 'Which?', header: 'H', multiSelect: false, options: [{ label: 'A', description: 'a' }] },
    ]
    agent.line(permission('q', 'AskUserQuestion', { questions }))
    expect(agent.eventsOf('awaiting_input')[0]).toMatchObject({ kind: 'question', prompt: 'Which?' })
    agent.on({ ...answer, requestId: 'q', answers: { 'Which?': 'A' } })
    expect(agent.written.at(-1)).toMatchObject({
      response: { response: { updatedInput: { questions, answers: { 'Which?': 'A' } } } },
    })
  })

  test('an automatic run asks for no approval', () => {
    const agent = new DrivenAgent()
    agent.begin()
    agent.line(permission('a', 'Bash', { command: 'x' }))
    agent.line(permission('q', 'AskUserQuestion'))
    agent.line({ type: 'control_request', request_id: 'h', request: { subtype: 'hook_callback' } })
    const answers = agent.written.slice(-3).map((line) => JSON.stringify(line))
    expect(answers[0]).toContain('"allow"')
    expect(answers[1]).toContain('"deny"')
    expect(answers[2]).toContain('"error"')
    expect(agent.eventsOf('awaiting_input')).toEqual([])
  })
})

describe('messages', () => {
  const message = { kind: 'message', id: 'm', text: 'also this', by: 'someone' } as const
  const lifecycle = (agent: DrivenAgent, state: string): void => {
    const sent = agent.written.findLast(({ type }) => type === 'user')
    agent.line({ type: 'command_lifecycle', command_uuid: sent?.['uuid'], state })
  }

  test('are written once, and a turn with one that waits is not the last', () => {
    const agent = new DrivenAgent()
    agent.begin()
    agent.on(message)
    expect(agent.on(message)).toEqual([])
    expect(() => agent.on({ ...message, text: 'other' })).toThrow('another text')
    agent.line(result())
    expect(agent.steps).toEqual([])
    lifecycle(agent, 'started')
    agent.line(text('Yes', 'msg-2'))
    agent.line(result({ result: 'Both done' }))
    expect(agent.steps).toEqual(['end_input'])
    expect(agent.driver.messageView('m')).toEqual({ id: 'm', receipt: 'completed' })
    expect(() => agent.on({ ...message, id: 'n' })).toThrow('ending or has ended')
    agent.on({ kind: 'exit', code: 0, signal: null })
    expect(agent.on(message)).toEqual([])
    expect(agent.driver.outcome?.summary).toBe('Both done')
  })

  test('that come before the start are written after the task', () => {
    const agent = new DrivenAgent()
    agent.on(message)
    expect(agent.written).toEqual([])
    agent.begin()
    expect(agent.written.map(({ message: sent }) => sent)).toMatchObject([
      undefined,
      { content: 'Do it' },
      { content: 'also this' },
    ])
  })

  test('begin a run without a task, which waits for the first one', () => {
    const agent = new DrivenAgent({ task: '', isInteractive: true })
    agent.on({ kind: 'setting', setting: { subtype: 'set_model', model: 'opus' } })
    agent.on({ kind: 'started' })
    expect(agent.driver.state).toBe('idle')
    expect(agent.written.map(({ request }) => request)).toMatchObject([
      { subtype: 'initialize' },
      { subtype: 'set_model', model: 'opus' },
    ])
    const content = [{ type: 'image', source: {} }]
    agent.on({ ...message, content })
    expect(agent.written.at(-1)).toMatchObject({ type: 'user', message: { content } })
    expect(JSON.stringify(agent.journal)).not.toContain('image')
    lifecycle(agent, 'started')
    agent.line(text('Yes', 'msg-1'))
    agent.line(result())
    expect(agent.driver.state).toBe('idle')
    agent.on({ kind: 'exit', code: 0, signal: null })
    expect(() => agent.on({ kind: 'setting', setting: { subtype: 'set_model', model: 'x' } })).toThrow(
      'ended',
    )
    const unused = new DrivenAgent({ task: '', isInteractive: true })
    unused.on({ kind: 'started' })
    unused.on({ kind: 'exit', code: 0, signal: null })
    expect(unused.driver.outcome).toMatchObject({ status: 'completed', message: null })
  })

  test('continue an interactive run, which ends when none comes', () => {
    const agent = new DrivenAgent({ isInteractive: true, limits: { idleMs: 1_000, stepMs: 100 } })
    agent.begin()
    agent.line(result())
    expect(agent.driver.state).toBe('idle')
    agent.on(message)
    expect(agent.driver.state).toBe('turn')
    lifecycle(agent, 'completed')
    agent.line(result({ result: 'Second' }))
    agent.wait(1_000)
    expect(agent.steps).toEqual(['end_input'])
    agent.on({ kind: 'exit', code: 0, signal: null })
    expect(agent.driver.outcome).toMatchObject({ status: 'completed', summary: 'Second' })
  })

  test('may come later than the next output of an agent that works', () => {
    const agent = new DrivenAgent({ isInteractive: true, limits: { idleMs: 1_000, restMs: 5_000 } })
    agent.begin()
    agent.line(result())
    agent.wait(4_999)
    expect(agent.driver.state).toBe('idle')
    agent.wait(1)
    expect(agent.steps).toEqual(['end_input'])
  })

  test('go on after an interrupt; without one the run was aborted', () => {
    const agent = new DrivenAgent({ limits: { idleMs: 1_000 } })
    agent.begin()
    agent.on({ kind: 'interrupt' })
    expect(agent.steps).toEqual(['interrupt'])
    agent.line(result({ subtype: 'error_during_execution', is_error: true }))
    expect(agent.eventsOf('awaiting_input')).toMatchObject([{ kind: 'message' }])
    agent.wait(1_000)
    expect(agent.driver.stopping?.reason).toBe('aborted')
  })
})

describe('time limits', () => {
  test('an interrupt withdraws what the agent asked, and denies what it asks before the turn ends', () => {
    const agent = new DrivenAgent({ isInteractive: true, permission: 'ask' })
    agent.begin()
    agent.line(permission('p1', 'Write'))
    expect(agent.driver.state).toBe('awaiting')
    agent.on({ kind: 'interrupt' })
    expect(agent.driver.state).toBe('turn')
    expect(agent.driver.approvalView('p1')?.state).toBe('withdrawn')
    agent.line(permission('p2', 'Write'))
    expect(agent.driver.state).toBe('turn')
    expect(agent.written.at(-1)).toMatchObject({
      response: { request_id: 'p2', response: { behavior: 'deny' } },
    })
    agent.line({ type: 'control_cancel_request', request_id: 'p1' })
    agent.line(result({ subtype: 'error_during_execution' }))
    expect(agent.driver.state).toBe('idle')
    agent.on({ kind: 'message', id: 'm1', text: 'Go on', by: 'ann' })
    agent.line(permission('p3', 'Write'))
    expect(agent.driver.state).toBe('awaiting')
  })

  test('end a program by interrupt, end of input, TERM and KILL', () => {
    const agent = new DrivenAgent({ limits: { idleMs: 10_000, stepMs: 100 } })
    agent.begin()
    agent.wait(9_999)
    expect(agent.steps).toEqual([])
    agent.wait(1)
    expect(agent.steps).toEqual(['interrupt'])
    agent.wait(100)
    expect(agent.steps).toEqual(['interrupt', 'end_input'])
    agent.wait(100)
    expect(agent.steps).toEqual(['interrupt', 'end_input', 'SIGTERM'])
    agent.wait(100)
    expect(agent.steps).toEqual(['interrupt', 'end_input', 'SIGTERM', 'SIGKILL'])
    expect(agent.driver.deadlineMs).toBeUndefined()
    agent.on({ kind: 'exit', code: null, signal: 'SIGKILL' })
    expect(agent.driver.outcome).toMatchObject({ status: 'timed_out', signal: 'SIGKILL' })
  })

  test('do not wait for the next step once the interrupted turn has ended', () => {
    const agent = new DrivenAgent({ limits: { stepMs: 1_000 } })
    agent.begin()
    agent.on({ kind: 'stop', reason: 'aborted', message: 'By someone' })
    agent.on({ kind: 'stop', reason: 'budget', message: 'Later' })
    agent.line(result({ is_error: true }))
    expect(agent.steps).toEqual(['interrupt', 'end_input'])
    agent.on({ kind: 'exit', code: 1, signal: null })
    expect(agent.driver.outcome).toMatchObject({ status: 'aborted', message: 'By someone' })
  })

  test('keep the result of a program that does not exit', () => {
    const agent = new DrivenAgent({ limits: { exitMs: 1_000, stepMs: 100 } })
    agent.begin()
    agent.line(result())
    // Not even signs of life extend it.
    agent.wait(900)
    agent.line({ type: 'system', subtype: 'status' })
    agent.wait(100)
    expect(agent.steps).toEqual(['end_input', 'SIGTERM'])
    agent.wait(100)
    agent.on({ kind: 'exit', code: null, signal: 'SIGKILL' })
    expect(agent.driver.outcome).toMatchObject({ status: 'completed', summary: 'Done' })
  })

  test('bound the whole run, however much it reports', () => {
    const agent = new DrivenAgent({ limits: { wallClockMs: 10_000, idleMs: 5_000 } })
    agent.begin()
    for (let count = 0; count < 12; count += 1) {
      agent.wait(1_000)
      agent.line(text('still', `msg-${count}`))
    }
    expect(agent.driver.stopping).toMatchObject({ reason: 'timed_out' })
  })

  test('a run stopped before its program started does not start it', () => {
    const agent = new DrivenAgent()
    agent.on({ kind: 'stop', reason: 'aborted', message: 'x' })
    agent.on({ kind: 'not_started', message: '' })
    expect(agent.driver.outcome).toMatchObject({ status: 'aborted', message: 'x' })
    expect(agent.written).toEqual([])
  })
})

describe('results', () => {
  test.each([
    [{ subtype: 'error_max_turns', is_error: true }, 'budget'],
    [{ subtype: 'error_max_budget_usd', is_error: true }, 'budget'],
    [{ subtype: 'success', is_error: true, api_error_status: 402, result: 'Budget spent' }, 'budget'],
    [{ subtype: 'success', is_error: true, api_error_status: 400, result: 'API Error' }, 'failed'],
    [{ subtype: 'error_during_execution', is_error: true }, 'failed'],
    [{ subtype: 'success' }, 'completed'],
  ] as const)('%j is %s', (fields, status) => {
    const agent = new DrivenAgent()
    agent.begin()
    agent.line(result(fields))
    agent.on({ kind: 'exit', code: 1, signal: null })
    expect(agent.driver.outcome?.status).toBe(status)
  })

  test('a program that ends without one crashed', () => {
    const agent = new DrivenAgent()
    agent.begin()
    agent.on({ kind: 'exit', code: 137, signal: null })
    expect(agent.driver.outcome).toMatchObject({ status: 'crashed', exitCode: 137 })
  })

  test('turns beyond the limit end the run', () => {
    const agent = new DrivenAgent({ limits: { maxTurns: 2 } })
    agent.begin()
    for (const id of ['a', 'a', 'b', 'b']) agent.line(text('x', id))
    expect(agent.driver.stopping).toBeUndefined()
    agent.line(text('x', 'c'))
    expect(agent.driver.stopping?.reason).toBe('budget')
  })

  test('a cost above the budget ends an interactive run', () => {
    const agent = new DrivenAgent({ isInteractive: true, limits: { maxBudgetMicroUsd: 500_000 } })
    agent.begin()
    agent.line(result({ total_cost_usd: 0.4 }))
    expect(agent.driver.stopping).toBeUndefined()
    agent.line(result({ total_cost_usd: 0.6 }))
    expect(agent.driver.stopping?.reason).toBe('budget')
  })

  test('a credential that the model API refuses ends the run at once', () => {
    const agent = new DrivenAgent()
    agent.begin()
    agent.line({
      type: 'system',
      subtype: 'api_retry',
      attempt: 1,
      max_retries: 3,
      error_status: 529,
      error: 'overloaded',
    })
    expect(agent.driver.stopping).toBeUndefined()
    agent.line({
      type: 'system',
      subtype: 'api_retry',
      attempt: 1,
      max_retries: 3,
      error_status: 401,
      error: 'authentication_failed',
    })
    expect(agent.driver.stopping?.reason).toBe('failed')
  })

  test('tokens of a message are counted once', () => {
    const agent = new DrivenAgent()
    agent.begin()
    const usage = (input: number, output: number): object => ({ input_tokens: input, output_tokens: output })
    const stream = (event: object): void => void agent.line({ type: 'stream_event', event })
    stream({ type: 'message_start', message: { id: 'a', usage: usage(100, 1) } })
    agent.line(text('x', 'a'))
    stream({ type: 'message_delta', usage: usage(100, 40) })
    stream({ type: 'message_start', message: { id: 'b', usage: usage(7, 1) } })
    stream({ type: 'message_delta', usage: { output_tokens: 3 } })
    expect(agent.driver.usage).toMatchObject({ turns: 2, inputTokens: 107, outputTokens: 43 })
  })
})
