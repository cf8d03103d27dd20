import { describe, expect, test } from 'bun:test'
import type { Role, ServerMessage } from '@sandwire/protocol'
import { PtyCodec } from './pty-codec.ts'
import type { CodecEffect } from './session-codec.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const nothing = new Uint8Array(0)

/** Messages to the client, decoded, and frames to the session. */
function seen(effects: readonly CodecEffect[]): unknown[] {
  return effects.map((effect) => {
    if (effect.do === 'toClient') return JSON.parse(effect.text) as unknown
    const { frame } = effect
    return {
      pass: typeof frame === 'string' ? (JSON.parse(frame) as unknown) : new TextDecoder().decode(frame),
    }
  })
}

const input = { at: 0, seq: 0 }
const welcome = (role: Role, authority: Role = role): ServerMessage => ({
  type: 'welcome',
  version: 1,
  session: 's',
  attachment: 'a1',
  role,
  authority,
  epoch: 1,
  mode: 'pty',
  output: 7,
  input,
  inputWindow: 1,
  keepSeconds: 60,
  cols: 80,
  rows: 24,
})
const exit: ServerMessage = { type: 'exit', code: 3, signal: null, outputEnd: 7, truncated: false }

class Conversation {
  readonly codec: PtyCodec

  constructor(history: Uint8Array = nothing) {
    this.codec = new PtyCodec({ name: 'token', historyBefore: () => history })
  }

  client(message: string | object | Uint8Array, canTake = false): unknown[] {
    const isText = typeof message === 'string' || message instanceof Uint8Array
    return seen(this.codec.fromClient(isText ? message : JSON.stringify(message), canTake))
  }

  session(message: ServerMessage, canTake = false): unknown[] {
    return seen(this.codec.fromSession({ kind: 'control', message }, canTake))
  }

  output(chunk: Uint8Array | string): unknown[] {
    return seen(this.codec.output(typeof chunk === 'string' ? bytes(chunk) : chunk))
  }
}

function admitted(role: Role = 'driver', authority: Role = role): Conversation {
  const conversation = new Conversation()
  conversation.session(welcome(role, authority))
  return conversation
}

const output = (data: string): unknown => ({ type: 'output', data, session_id: 'token' })

describe('messages to the client', () => {
  test('begin with the session, then the history, then new output', () => {
    const conversation = new Conversation(bytes('$ ls\r\n'))
    expect([
      ...conversation.session(welcome('driver')),
      ...conversation.output('a'),
      ...conversation.session(exit),
    ]).toEqual([
      { type: 'session', session_id: 'token' },
      { type: 'history', data: '$ ls\r\n' },
      output('a'),
      { type: 'exit', code: 3, session_id: 'token' },
    ])
  })

  test('are the exact text that front ends expect', () => {
    const messages = admitted().codec.output(bytes('"\u001b'))
    expect(messages).toEqual([
      { do: 'toClient', text: '{"type":"output","data":"\\"\\u001b","session_id":"token"}' },
    ])
  })

  test('have no history when there is none', () => {
    expect(new Conversation().session(welcome('driver'))).toEqual([{ type: 'session', session_id: 'token' }])
  })

  test('never split a character, wherever the bytes are split', () => {
    const euro = bytes('€')
    const conversation = new Conversation(Uint8Array.of(0x78, ...euro.subarray(0, 1)))
    expect(conversation.session(welcome('driver')).at(-1)).toEqual({ type: 'history', data: 'x' })
    expect(conversation.output(euro.subarray(1, 2))).toEqual([])
    expect(conversation.output(euro.subarray(2))).toEqual([output('€')])
  })

  test('are the same text however the bytes are split', () => {
    const whole = Uint8Array.of(...bytes('aé€😀\u001b[0m'), 0xff, 0xe2, 0x82, ...bytes('z'))
    const expected = new TextDecoder('utf-8', { ignoreBOM: true }).decode(whole)
    const textOf = (effects: readonly unknown[]): string =>
      effects.map((effect) => String(Reflect.get(Object(effect), 'data'))).join('')
    for (let first = 0; first <= whole.length; first += 1)
      for (let second = first; second <= whole.length; second += 1) {
        const conversation = admitted()
        const parts = [whole.subarray(0, first), whole.subarray(first, second), whole.subarray(second)]
        expect(textOf(parts.flatMap((part) => conversation.output(part)))).toBe(expected)
      }
  })

  test('have a replacement character for invalid bytes, also for an incomplete character at the end', () => {
    const conversation = admitted()
    expect(conversation.output(Uint8Array.of(0xff, 0x61))).toEqual([output('\ufffda')])
    expect(conversation.output(Uint8Array.of(0xf0, 0x9f))).toEqual([])
    expect(conversation.session(exit)).toEqual([
      output('\ufffd'),
      { type: 'exit', code: 3, session_id: 'token' },
    ])
  })

  test('keep a byte order mark', () => {
    expect(admitted().output('\ufeffx')).toEqual([output('\ufeffx')])
  })

  test('draw a whole screen where output was missed', () => {
    const conversation = admitted()
    conversation.output(Uint8Array.of(0xe2))
    const messages = conversation.session({
      type: 'snapshot',
      at: 9,
      cols: 80,
      rows: 24,
      bytes: 3,
      exact: true,
    })
    const screen = conversation.codec.fromSession(
      { kind: 'data', stream: 'snapshot', payload: bytes('$ €') },
      false,
    )
    expect([...messages, ...seen(screen)]).toEqual([output('\u001bc'), output('$ €')])
  })

  test('have a null exit code for a process killed by a signal', () => {
    expect(admitted().session({ ...exit, code: null, signal: 'SIGKILL' })).toEqual([
      { type: 'exit', code: null, session_id: 'token' },
    ])
  })

  test('report an error that does not end the connection', () => {
    const conversation = admitted()
    const warning = {
      type: 'error',
      code: 'line_too_long',
      message: 'Cannot type this',
      fatal: false,
    } as const
    expect(conversation.session(warning)).toEqual([{ type: 'error', data: 'Cannot type this' }])
    expect(conversation.codec.closing()).toEqual({ code: 1000, reason: '' })
  })

  test('are the same for every missing session', () => {
    for (const code of ['session_not_found', 'session_gone']) {
      const conversation = new Conversation()
      const messages = conversation.session({ type: 'error', code, message: code, fatal: true })
      expect(messages).toEqual([{ type: 'session_not_found' }])
      expect(conversation.codec.closing()).toMatchObject({ code: 4001, reason: 'session_not_found' })
    }
  })
})

describe('messages from the client', () => {
  test('reach the session in order, with their offsets', () => {
    const conversation = admitted()
    expect([
      ...conversation.client({ type: 'input', data: 'é' }),
      ...conversation.client({ type: 'resize', cols: 120, rows: 40 }),
      ...conversation.client({ type: 'resize' }),
      ...conversation.client({ type: 'ping' }),
      ...conversation.session({ type: 'pong', id: 0 }),
    ]).toEqual([
      { pass: 'é' },
      { pass: { type: 'resize', cols: 120, rows: 40, at: 2, seq: 1 } },
      { pass: { type: 'resize', cols: 80, rows: 24, at: 2, seq: 2 } },
      { pass: { type: 'ping', id: 0 } },
      { type: 'pong' },
    ])
  })

  test.each(['ls\n', '7', '"x"', '[1]', 'null', '{"type":'])(
    'are input unless they are an object: %s',
    (text) => {
      expect(admitted().client(text)).toEqual([{ pass: text }])
    },
  )

  test.each([
    { type: 'input', data: 7 },
    { type: 'resize', cols: 0 },
    { type: 'resize', cols: 80.5 },
    { type: 'resize', rows: 1e9 },
    { type: 'exec', cmd: 'ls' },
    {},
  ])('are refused by type when not supported: %p', (message) => {
    expect(admitted().client(message)).toEqual([{ type: 'error', data: expect.stringMatching(/^Cannot /) }])
  })

  test('(threat T24) are not echoed in errors with control characters', () => {
    const [messages] = admitted().client({ type: '\u001b]0;x\u0007\u202e' })
    expect(JSON.stringify(messages)).toBe(
      JSON.stringify({
        type: 'error',
        data: 'Cannot use a message of type "]0;x": expected input, resize or ping',
      }),
    )
  })

  test('are refused with an error from a viewer', () => {
    const conversation = admitted('viewer')
    expect(conversation.client('rm -rf .')).toEqual([
      { type: 'error', data: 'Cannot take input: this connection is read-only' },
    ])
    expect(conversation.client({ type: 'resize', cols: 1, rows: 1 }, true)).toEqual([])
  })

  test.each([
    { type: 'role', role: 'driver' },
    { type: 'take' },
    { type: 'hello', role: 'driver' },
    { type: 'signal', signal: 'SIGKILL' },
    { type: 'eof' },
    '{"__proto__":{"type":"input","data":"x"}}',
    '{"type":"input","data":"x","role":"driver"}',
    bytes('raw'),
  ])('of a viewer never reach the session: %p (threat T5)', (message) => {
    const messages = admitted('viewer', 'viewer').client(message, true)
    expect(messages).toEqual([{ type: 'error', data: expect.any(String) }])
  })

  test('type without resizing from a collaborator', () => {
    const conversation = admitted('collaborator')
    expect(conversation.client('x')).toEqual([{ pass: 'x' }])
    expect(conversation.client({ type: 'resize', cols: 100, rows: 30 }, true)).toEqual([])
  })

  test('resize only when the lease may be taken', () => {
    const conversation = admitted('collaborator', 'driver')
    expect(conversation.client({ type: 'resize', cols: 100, rows: 30 }, false)).toEqual([])
    expect(conversation.client({ type: 'resize', cols: 100, rows: 30 }, true)).toEqual([
      { pass: { type: 'take' } },
      { pass: { type: 'resize', cols: 100, rows: 30, at: 0, seq: 1 } },
    ])
  })

  test('continue from the sessions input offset after another client took the lease', () => {
    const conversation = admitted('driver')
    conversation.client('abc')
    const role = { type: 'role', role: 'collaborator', epoch: 5, input: { at: 2, seq: 0 } } as const
    expect(conversation.session(role)).toEqual([{ pass: { type: 'roleSeen', epoch: 5 } }])
    conversation.session({ ...role, role: 'driver', epoch: 6 })
    expect(conversation.client({ type: 'resize', cols: 9, rows: 9 })).toEqual([
      { pass: { type: 'resize', cols: 9, rows: 9, at: 2, seq: 1 } },
    ])
  })

  test('take the lease when no driver is left', () => {
    const presence = { type: 'presence', driver: null, attachments: [], private: null } as const
    expect(admitted('collaborator', 'driver').session(presence, true)).toEqual([{ pass: { type: 'take' } }])
    expect(admitted('collaborator').session(presence, true)).toEqual([])
  })
})

describe('the connection', () => {
  test('stays open after the exit, because a front end would reconnect', () => {
    const conversation = admitted()
    conversation.session(exit)
    expect(conversation.codec.closing()).toBeUndefined()
    expect(conversation.client({ type: 'ping' })).toEqual([{ pass: { type: 'ping', id: 0 } }])
  })

  test('closes when the sandbox stops, in either order of exit and notice', () => {
    const stopping = { type: 'error', code: 'shutting_down', message: 'Stopping', fatal: false } as const
    const before = admitted()
    before.session(stopping)
    before.session(exit)
    expect(before.codec.closing()).toEqual({ code: 1000, reason: '' })
    const after = admitted()
    after.session(exit)
    expect(after.session(stopping)).toEqual([
      { type: 'error', data: 'Stopping' },
      { pass: { type: 'detach' } },
    ])
    expect(after.codec.closing()).toEqual({ code: 1000, reason: '' })
  })
})
