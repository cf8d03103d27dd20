import { describe, expect, test } from 'bun:test'
import type { RunEvent } from '@sandwire/agent'
import type { ConversationEffect } from '../src/conversation/draft.ts'
import type { ClientFrame } from '../src/conversation/frames.ts'
import { type ConversationInput, ConversationState } from '../src/conversation/state.ts'

const SENDER = { socket: 's', account: 'ann', name: 'Ann' }

/** A conversation whose agent works on a first message. */
class Conversation {
  readonly state = new ConversationState('c')
  readonly effects: ConversationEffect[] = []
  #seq = 0
  #ids = 0

  constructor() {
    this.frame({ type: 'message', content: 'Begin', id: 'first' })
    this.on({ type: 'pinned', isPinned: true })
    this.on({ type: 'started', run: 'c-1' })
    this.on({ type: 'opened', run: 'c-1' })
    this.event({ type: 'status', status: 'session', agentSessionId: 'a', model: 'm', version: '1' })
    this.event({ type: 'status', status: 'state', state: 'turn' })
  }

  on(input: ConversationInput): void {
    this.effects.push(...this.state.on(input, 1))
  }

  frame(frame: ClientFrame): void {
    this.#ids += 1
    this.on({ type: 'frame', frame, sender: SENDER, newId: `new-${this.#ids}` })
  }

  event(event: RunEvent): void {
    this.#seq += 1
    this.on({ type: 'events', run: 'c-1', events: [{ seq: this.#seq, atMs: 0, event }] })
  }

  ask(requestId: string, name: string): void {
    this.event({
      type: 'awaiting_input',
      kind: 'permission',
      requestId,
      prompt: '',
      deadlineMs: 9,
      tool: { name, title: name, input: {} },
    })
  }

  endTurn(): void {
    this.event({ type: 'status', status: 'state', state: 'idle' })
    this.event({ type: 'awaiting_input', kind: 'message', requestId: 't', prompt: '', deadlineMs: null })
  }

  /** Ids of messages that the agent does not get. */
  get dropped(): string[] {
    return this.effects.flatMap((effect) =>
      effect.kind === 'append' && effect.entry.frame.type === 'message_dropped'
        ? [effect.entry.frame.id]
        : [],
    )
  }

  get messages(): string[] {
    return this.effects.flatMap((effect) =>
      effect.kind === 'append' && effect.entry.frame.type === 'user_message'
        ? [effect.entry.frame.content]
        : [],
    )
  }

  get waiting(): string[] {
    return this.state.stateFrame.waiting.map(({ content }) => content)
  }

  /** Codes of errors that were sent to the sender. */
  get errors(): string[] {
    return this.effects.flatMap((effect) =>
      effect.kind === 'send' && effect.frame.type === 'error' ? [effect.frame.code] : [],
    )
  }
}

describe('messages that wait for the end of the turn', () => {
  test('are given to the agent one per turn, as they were last edited', () => {
    const conversation = new Conversation()
    for (const id of ['a', 'b', 'c']) conversation.frame({ type: 'message', content: id, id, whenIdle: true })
    conversation.frame({ type: 'message_edit', id: 'a', content: 'edited' })
    conversation.frame({ type: 'message_remove', id: 'b' })
    expect([conversation.waiting, conversation.messages]).toEqual([['edited', 'c'], ['Begin']])
    conversation.endTurn()
    expect([conversation.waiting, conversation.messages]).toEqual([['c'], ['Begin', 'edited']])
    conversation.frame({ type: 'message_edit', id: 'a', content: 'too late' })
    expect(conversation.errors).toEqual(['conflict'])
  })

  test('can be sent at once, and are acknowledged again when they are repeated', () => {
    const conversation = new Conversation()
    conversation.frame({ type: 'message', content: 'a', id: 'a', whenIdle: true })
    conversation.frame({ type: 'message', content: 'a', id: 'a', whenIdle: true })
    expect(conversation.waiting).toEqual(['a'])
    conversation.frame({ type: 'message_now', id: 'a' })
    conversation.frame({ type: 'message', content: 'a', id: 'a', whenIdle: true })
    expect([conversation.waiting, conversation.messages]).toEqual([[], ['Begin', 'a']])
    expect(conversation.state.work(1)).toMatchObject({ kind: 'deliver', message: { id: 'a' } })
    const acknowledged = conversation.effects.flatMap((effect) =>
      effect.kind === 'send' && effect.frame.type === 'message_ack' ? [effect.frame.seq] : [],
    )
    expect(acknowledged.slice(1)).toEqual([null, null, 3])
  })

  test('stay after a stop until a person sends something', () => {
    const conversation = new Conversation()
    conversation.frame({ type: 'message', content: 'a', id: 'a', whenIdle: true })
    conversation.frame({ type: 'interrupt' })
    expect(conversation.state.work(1)).toEqual({ kind: 'interrupt', run: 'c-1' })
    conversation.on({ type: 'interrupted', run: 'c-1' })
    conversation.endTurn()
    expect([conversation.waiting, conversation.state.stateFrame.isPaused]).toEqual([['a'], true])
    conversation.frame({ type: 'message_now', id: 'a' })
    expect([conversation.waiting, conversation.messages]).toEqual([[], ['Begin', 'a']])
  })

  test('do not wait while the agent rests', () => {
    const conversation = new Conversation()
    conversation.endTurn()
    conversation.frame({ type: 'message', content: 'a', id: 'a', whenIdle: true })
    expect([conversation.waiting, conversation.messages]).toEqual([[], ['Begin', 'a']])
  })

  test('are refused when too many wait', () => {
    const conversation = new Conversation()
    for (let count = 0; count < 101; count += 1)
      conversation.frame({ type: 'message', content: 'x', id: `m${count}`, whenIdle: true })
    expect([conversation.waiting.length, conversation.errors]).toEqual([100, ['rate_limited']])
  })
})

test('a resting agent works as soon as it has been sent a message, and a stop drops that', () => {
  const conversation = new Conversation()
  conversation.endTurn()
  conversation.on({ type: 'checked', run: 'c-1', agent: 'idle', lastSeq: 4 })
  conversation.on({ type: 'pinned', isPinned: false })
  expect([conversation.state.activity, conversation.state.work(1)]).toEqual(['idle', undefined])
  conversation.frame({ type: 'message', content: 'a', id: 'a' })
  expect([conversation.state.activity, conversation.state.work(1)?.kind]).toEqual(['working', 'deliver'])
  conversation.frame({ type: 'interrupt' })
  expect([conversation.dropped, conversation.state.work(1)?.kind]).toEqual([['a'], 'interrupt'])
  // Sent also when the agent has nothing to do: it may just have got the message.
  conversation.on({ type: 'interrupted', run: 'c-1' })
  conversation.on({ type: 'opened', run: 'c-1' })
  conversation.on({ type: 'checked', run: 'c-1', agent: 'idle', lastSeq: 4 })
  expect(conversation.state.activity).toBe('idle')
})

test('an agent that waited works as soon as it was answered', () => {
  const conversation = new Conversation()
  conversation.ask('r', 'Write')
  expect(conversation.state.activity).toBe('awaiting')
  conversation.event({ type: 'status', status: 'state', state: 'awaiting' })
  conversation.on({ type: 'checked', run: 'c-1', agent: 'awaiting', lastSeq: 4 })
  conversation.frame({ type: 'permission_response', requestId: 'r', decision: 'allow' })
  expect(conversation.state.activity).toBe('working')
})

test('every client gets the answers to a question, and the reason of a denial', () => {
  const conversation = new Conversation()
  conversation.event({
    type: 'awaiting_input',
    kind: 'question',
    requestId: 'q',
    prompt: '',
    deadlineMs: 9,
    questions: [{ question: 'Which?', header: '', allowsMany: false, options: [] }],
  })
  conversation.frame({ type: 'ask_user_answer', requestId: 'q', answers: { 'Which?': 'Blue' } })
  conversation.ask('r', 'Write')
  conversation.frame({ type: 'permission_response', requestId: 'r', decision: 'deny', message: 'Use tabs' })
  const frames = conversation.effects.flatMap((each) => (each.kind === 'append' ? [each.entry.frame] : []))
  expect(frames.filter(({ type }) => type === 'request_resolved')).toMatchObject([
    { requestId: 'q', outcome: 'allow', answers: { 'Which?': 'Blue' } },
    { requestId: 'r', outcome: 'deny', message: 'Use tabs' },
  ])
})

test('a start waits while another agent works in the sandbox, and says so', () => {
  const state = new ConversationState('c')
  const message = { type: 'message', content: 'Begin', id: 'first' } as const
  state.on({ type: 'frame', frame: message, sender: SENDER, newId: '' }, 1)
  state.on({ type: 'pinned', isPinned: true }, 1)
  const work = state.work(1)
  if (work === undefined) throw new Error('There is nothing to do')
  const failure = { code: 'conflict', message: '', retryable: false } as const
  state.on({ type: 'failed', work, failure }, 1)
  expect(state.stateFrame).toMatchObject({ state: 'starting', isBlocked: true })
  expect([state.work(1), state.work(10_000)?.kind]).toEqual([undefined, 'start'])
  state.on({ type: 'started', run: 'c-1' }, 10_000)
  expect(state.stateFrame).toMatchObject({ state: 'working', isBlocked: false })
})

test('a stop while the program starts drops its message and ends the program', () => {
  const state = new ConversationState('c')
  const message = { type: 'message', content: 'Begin', id: 'first' } as const
  state.on({ type: 'frame', frame: message, sender: SENDER, newId: '' }, 1)
  const effects = state.on({ type: 'frame', frame: { type: 'interrupt' }, sender: SENDER, newId: '' }, 1)
  expect(effects).toContainEqual(
    expect.objectContaining({
      entry: expect.objectContaining({ frame: expect.objectContaining({ type: 'message_dropped' }) }),
    }),
  )
  expect([state.activity, state.work(1)]).toEqual(['idle', { kind: 'forget', run: 'c-1' }])
})

describe('a tool that is always allowed', () => {
  test('is allowed without a question, also where it was asked before, until a person forgets it', () => {
    const conversation = new Conversation()
    conversation.ask('r1', 'Write')
    conversation.ask('r2', 'Write')
    conversation.ask('r3', 'Bash')
    conversation.frame({ type: 'permission_response', requestId: 'r1', decision: 'allow', always: true })
    conversation.ask('r4', 'Write')
    const open = conversation.state.snapshot.requests.filter(({ answer }) => answer === null)
    expect(open.map(({ requestId }) => requestId)).toEqual(['r3'])
    expect(conversation.state.stateFrame.allowedTools).toEqual(['Write'])
    conversation.frame({ type: 'forget_tool', toolName: 'Write' })
    conversation.ask('r5', 'Write')
    expect(conversation.state.snapshot.requests.at(-1)).toMatchObject({ requestId: 'r5', answer: null })
  })

  test('does not come from a denial', () => {
    const conversation = new Conversation()
    conversation.ask('r1', 'Write')
    conversation.frame({ type: 'permission_response', requestId: 'r1', decision: 'deny', always: true })
    expect(conversation.state.stateFrame.allowedTools).toEqual([])
  })
})
