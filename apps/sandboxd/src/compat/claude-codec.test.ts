import { describe, expect, test } from 'bun:test'
import type { JournalEntry } from '@sandwire/agent'
import fc from 'fast-check'
import { ClaudeCodec, type ClaudeEffect } from './claude-codec.ts'
import { ClaudeSession } from './claude-session.ts'

type Content = JournalEntry extends infer E
  ? E extends JournalEntry
    ? Omit<E, 'seq' | 'atMs' | 'nowMs' | 'eventSeq'>
    : never
  : never

/** A run's journal with the clients of its session. */
class Run {
  readonly session: ClaudeSession
  #seq = 0

  constructor(start: ConstructorParameters<typeof ClaudeSession>[0] = {}) {
    this.session = new ClaudeSession(start)
  }

  client(options: { readonly isResumed?: boolean; readonly mayInput?: boolean } = {}): ClaudeCodec {
    let ids = 0
    return new ClaudeCodec(
      {
        name: 'token',
        isResumed: false,
        mayInput: true,
        by: 'ann',
        mintId: () => `m${(ids += 1)}`,
        ...options,
      },
      this.session,
    )
  }

  /** Appends an entry; returns what each client gets. */
  append(content: Content, ...clients: readonly ClaudeCodec[]): readonly (readonly string[])[] {
    this.#seq += 1
    const entry = { seq: this.#seq, atMs: 0, nowMs: 0, eventSeq: 0, ...content } as JournalEntry
    this.session.entry(entry)
    if (clients.length > 0) this.session.sent(this.#seq)
    return clients.map((client) => client.entry(entry))
  }
}

const inputs = (effects: readonly ClaudeEffect[]): unknown[] =>
  effects.map((effect) => (effect.do === 'toAgent' ? effect.input : (JSON.parse(effect.text) as unknown)))
const send = (client: ClaudeCodec, message: object | string): unknown[] =>
  inputs(client.fromClient(typeof message === 'string' ? message : JSON.stringify(message)))
const message = (text: string, more: object = {}): object => ({
  kind: 'message',
  text,
  ...more,
  id: 'm1',
  by: 'ann',
})
const error = (text: unknown = expect.any(String)): object => ({
  type: 'system',
  subtype: 'error',
  message: text,
})

const REQUEST = {
  type: 'control_request',
  request_id: 'r1',
  request: { subtype: 'can_use_tool', tool_name: 'Bash', input: { command: 'ls' } },
}
const INIT = { type: 'system', subtype: 'init', session_id: 'uuid', slash_commands: ['compact'] }

describe('greets', () => {
  test('with the settings of the run', () => {
    const run = new Run({ model: 'sonnet', claude: { maxThinkingTokens: 5 } })
    expect(run.client().greet()).toEqual([
      '{"type":"system","subtype":"connected","session_id":"token","resumed":false,"settings":{"max_thinking_tokens":5,"model":"sonnet"}}',
    ])
  })

  test('a client that joins later with what others were sent and it needs: settings, init and open requests', () => {
    const run = new Run()
    const first = run.client()
    run.append({ kind: 'line', line: INIT }, first)
    run.append({ kind: 'line', line: REQUEST }, first)
    run.append({ kind: 'line', line: { ...REQUEST, request_id: 'r2' } }, first)
    run.append({ kind: 'setting', setting: { subtype: 'set_model', model: 'opus' } }, first)
    run.append({ kind: 'approval', requestId: 'r1', decision: 'allow', by: 'ann' }, first)
    const [connected = '', ...rest] = run.client({ isResumed: true }).greet()
    expect(JSON.parse(connected)).toMatchObject({ resumed: true, settings: { model: 'opus' } })
    expect(rest.map((each) => JSON.parse(each) as unknown)).toEqual([INIT, { ...REQUEST, request_id: 'r2' }])
  })

  test('without lines that no client was sent, because they follow', () => {
    const run = new Run()
    run.append({ kind: 'line', line: INIT })
    run.append({ kind: 'line', line: REQUEST })
    expect(run.client().greet()).toHaveLength(1)
  })
})

describe('passes on', () => {
  const run = new Run()
  const client = run.client()
  const passed = (content: Content): unknown[] =>
    (run.append(content, client)[0] ?? []).map((text) => JSON.parse(text) as unknown)

  test('lines as the program wrote them', () => {
    const text = '{"type":"assistant","message":{"content":[]},"z":1,"a":null}'
    expect(run.append({ kind: 'line', line: JSON.parse(text) as object as never }, client)).toEqual([[text]])
    expect(client.partial('{"kind":"line","line":{"type":"stream_event","event":{"type":"x"}}}')).toEqual([
      '{"type":"stream_event","event":{"type":"x"}}',
    ])
  })

  test('other output, and the exit', () => {
    expect(passed({ kind: 'line', text: 'not JSON' })).toEqual([{ type: 'raw', data: 'not JSON' }])
    expect(passed({ kind: 'stderr', text: 'oops\n' })).toEqual([
      { type: 'system', subtype: 'stderr', message: 'oops' },
    ])
    expect(passed({ kind: 'exit', code: 3, signal: null })).toEqual([
      { type: 'result', subtype: 'exit', exit_code: 3 },
    ])
    expect(passed({ kind: 'stop', reason: 'timed_out', message: 'Too long' })).toEqual([error('Too long')])
    expect(passed({ kind: 'not_started', message: 'No program' })).toEqual([
      error('No program'),
      { type: 'result', subtype: 'exit', exit_code: null },
    ])
  })

  test('no response to the request that starts the program, and no notes about pieces', () => {
    expect(
      passed({
        kind: 'line',
        line: { type: 'control_response', response: { request_id: 'sandwire-initialize' } },
      }),
    ).toEqual([])
    expect(passed({ kind: 'line', line: { type: 'stream_event', event: {} } })).toEqual([])
    expect(
      passed({ kind: 'line', line: { type: 'control_response', response: { request_id: 'sandwire-1' } } }),
    ).toHaveLength(1)
  })

  test('that another client answered a request', () => {
    const [one, other] = [run.client(), run.client()]
    run.append({ kind: 'line', line: REQUEST }, one, other)
    send(one, { type: 'control_response', request_id: 'r1', decision: 'allow' })
    expect(
      run.append({ kind: 'approval', requestId: 'r1', decision: 'allow', by: 'ann' }, one, other),
    ).toEqual([[], ['{"type":"control_cancel_request","request_id":"r1"}']])
  })

  test('that the conversation to continue does not exist, before the exit', () => {
    const continued = new Run({ resume: 'uuid' })
    expect(
      continued
        .append({ kind: 'exit', code: 1, signal: null }, continued.client())
        .flat()
        .map((text) => Reflect.get(JSON.parse(text) as object, 'subtype') as unknown),
    ).toEqual(['session_not_found', 'exit'])
    const found = new Run({ resume: 'uuid' })
    found.append({ kind: 'line', line: INIT }, found.client())
    expect(found.append({ kind: 'exit', code: 0, signal: null }, found.client()).flat()).toHaveLength(1)
  })
})

describe('takes', () => {
  const client = new Run().client()
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }

  test.each<[string, object | string, object]>([
    ['a text', { type: 'user', message: 'Hello' }, message('Hello')],
    ['a message', { type: 'user', message: { role: 'user', content: 'Hello' } }, message('Hello')],
    [
      'blocks',
      { type: 'user', message: { role: 'user', content: [{ type: 'text', text: 'See' }, image] } },
      message('See', { content: [{ type: 'text', text: 'See' }, image] }),
    ],
    [
      'images',
      { type: 'user', message: 'See', images: [{ data: 'AAAA', mimeType: 'image/png' }] },
      message('See', { content: [{ type: 'text', text: 'See' }, image] }),
    ],
    [
      'names of files, in a block before',
      { type: 'user', message: 'See', context_files: ['a.ts', 'b.ts'] },
      message('@a.ts @b.ts\nSee', {
        content: [
          { type: 'text', text: '@a.ts @b.ts' },
          { type: 'text', text: 'See' },
        ],
      }),
    ],
    ['a command', { type: 'command', command: 'compact' }, message('/compact')],
    ['text that is not JSON', 'Hello there', message('Hello there')],
  ])('%s as a message', (_, sent, taken) => {
    const run = new Run()
    expect(send(run.client(), sent)).toEqual([taken])
  })

  test.each<[string, object]>([
    ['blocks of another kind', { type: 'user', message: [{ type: 'document' }] }],
    [
      'an image of another kind',
      { type: 'user', message: '', images: [{ data: 'AAAA', mimeType: 'text/html' }] },
    ],
    ['an empty message', { type: 'user', message: '' }],
    ['a long message', { type: 'user', message: 'x'.repeat(64 * 1024 + 1) }],
    ['an unknown mode', { type: 'control', subtype: 'set_permission_mode', mode: 'bypassPermissions' }],
    [
      'a mode with the name of a method',
      { type: 'control', subtype: 'set_permission_mode', mode: 'constructor' },
    ],
    ['an unknown type', { type: 'nonsense' }],
    ['a restart', { type: 'restart' }],
    ['an answer without a decision', { type: 'control_response', request_id: 'r1' }],
  ])('%s not, and stays open', (_, sent) => {
    expect(send(client, sent)).toEqual([error()])
  })

  test('settings, and the mode of a message if it differs', () => {
    const run = new Run({ claude: { permissionMode: 'plan' } })
    const [one] = [run.client()]
    expect(send(one, { type: 'control', subtype: 'set_model', model: 'opus' })).toEqual([
      { kind: 'setting', setting: { subtype: 'set_model', model: 'opus' } },
    ])
    expect(send(one, { type: 'control', subtype: 'set_max_thinking_tokens' })).toEqual([
      { kind: 'setting', setting: { subtype: 'set_max_thinking_tokens', max_thinking_tokens: null } },
    ])
    expect(send(one, { type: 'user', message: 'Hi', mode: 'plan' })).toHaveLength(1)
    const setting = { subtype: 'set_permission_mode', mode: 'acceptEdits' } as const
    expect(send(one, { type: 'user', message: 'Hi', mode: 'act' })[0]).toEqual({ kind: 'setting', setting })
    run.append({ kind: 'setting', setting }, one)
    expect(send(one, { type: 'user', message: 'Hi', mode: 'act' })).toHaveLength(1)
  })

  test('answers in both forms', () => {
    const answer = (more: object): object => ({
      kind: 'approval',
      requestId: 'r1',
      permissions: [],
      by: 'ann',
      ...more,
    })
    const base = { type: 'control_response', request_id: 'r1' }
    expect(send(client, { ...base, decision: 'deny', message: 'No', tool_input: {} })).toEqual([
      answer({ decision: 'deny', message: 'No' }),
    ])
    const rule = { type: 'addRules', behavior: 'allow' }
    expect(
      send(client, { ...base, decision: 'allow', updatedInput: { a: 1 }, permission_suggestions: [rule] }),
    ).toEqual([answer({ decision: 'allow', updatedInput: '{"a":1}', permissions: [rule] })])
    expect(send(client, { ...base, answers: { 'Which?': ['A', 'B'] } })).toEqual([
      answer({ decision: 'allow', answers: { 'Which?': 'A, B' } }),
    ])
    const response = { subtype: 'success', request_id: 'r1', response: { behavior: 'deny', message: 'No' } }
    expect(send(client, { type: 'control_response', response })).toEqual([
      answer({ decision: 'deny', message: 'No' }),
    ])
  })

  test('anything, without an error of its own', () => {
    const types = ['user', 'command', 'control', 'control_response', 'approval_response', 'interrupt', 'x']
    const names = [
      'message',
      'images',
      'mode',
      'subtype',
      'request_id',
      'response',
      'decision',
      'answers',
      'updatedInput',
    ]
    const value = fc.jsonValue({ maxDepth: 3 })
    const answers = fc.constant({ 'Which?': { toString: 1, valueOf: 1 } })
    const fields = fc.dictionary(fc.constantFrom(...names), fc.oneof(value, answers))
    fc.assert(
      fc.property(fc.constantFrom(...types), fields, (type, rest) => {
        for (const effect of client.fromClient(JSON.stringify({ ...rest, type }))) JSON.stringify(effect)
      }),
      { numRuns: 2_000 },
    )
  })

  test('ping, initialize and both interrupts', () => {
    expect(send(client, { type: 'ping' })).toEqual([{ type: 'pong' }])
    const initialize = { type: 'control', subtype: 'initialize', capabilities: { permissions: true } }
    expect(send(client, initialize)).toEqual([{ type: 'system', subtype: 'echo', payload: initialize }])
    expect(send(client, { type: 'control', subtype: 'interrupt' })).toEqual([{ kind: 'interrupt' }])
    expect(send(client, { type: 'interrupt' })).toEqual([
      { kind: 'interrupt' },
      { type: 'system', subtype: 'interrupted', session_id: 'token' },
    ])
  })

  test('nothing from a viewer but a ping', () => {
    const viewer = new Run().client({ mayInput: false })
    expect(send(viewer, { type: 'user', message: 'Hello' })).toEqual([error()])
    expect(send(viewer, { type: 'control_response', request_id: 'r1', decision: 'allow' })).toEqual([error()])
    expect(send(viewer, { type: 'interrupt' })).toEqual([error()])
    expect(send(viewer, { type: 'ping' })).toEqual([{ type: 'pong' }])
  })
})
