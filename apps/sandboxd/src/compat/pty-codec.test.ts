import { describe, expect, test } from 'bun:test'
import type { Role, ServerMessage } from '@sandwire/protocol'
import { PtyCodec, type PtyEffect } from './pty-codec.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const nothing = new Uint8Array(0)

/** What goes to the client as it reads it, and what goes to the session as it is. */
function seen(effects: readonly PtyEffect[]): unknown[] {
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

class Talk {
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

function admitted(role: Role = 'driver', authority: Role = role): Talk {
  const talk = new Talk()
  talk.session(welcome(role, authority))
  return talk
}

const output = (data: string): unknown => ({ type: 'output', data, session_id: 'token' })

describe('what a client is told', () => {
  test('begins with the session, then what was before, then what comes', () => {
    const talk = new Talk(bytes('$ ls\r\n'))
    expect([...talk.session(welcome('driver')), ...talk.output('a'), ...talk.session(exit)]).toEqual([
      { type: 'session', session_id: 'token' },
      { type: 'history', data: '$ ls\r\n' },
      output('a'),
      { type: 'exit', code: 3, session_id: 'token' },
    ])
  })

  test('is the very text that front ends were written for', () => {
    const told = admitted().codec.output(bytes('"\u001b'))
    expect(told).toEqual([
      { do: 'toClient', text: '{"type":"output","data":"\\"\\u001b","session_id":"token"}' },
    ])
  })

  test('says nothing of before when nothing was', () => {
    expect(new Talk().session(welcome('driver'))).toEqual([{ type: 'session', session_id: 'token' }])
  })

  test('never cuts a character, wherever it comes in pieces', () => {
    const euro = bytes('€')
    const talk = new Talk(Uint8Array.of(0x78, ...euro.subarray(0, 1)))
    expect(talk.session(welcome('driver')).at(-1)).toEqual({ type: 'history', data: 'x' })
    expect(talk.output(euro.subarray(1, 2))).toEqual([])
    expect(talk.output(euro.subarray(2))).toEqual([output('€')])
  })

  test('is the same text however the bytes come', () => {
    const whole = Uint8Array.of(...bytes('aé€😀\u001b[0m'), 0xff, 0xe2, 0x82, ...bytes('z'))
    const expected = new TextDecoder('utf-8', { ignoreBOM: true }).decode(whole)
    const textOf = (effects: readonly unknown[]): string =>
      effects.map((effect) => String(Reflect.get(Object(effect), 'data'))).join('')
    for (let first = 0; first <= whole.length; first += 1)
      for (let second = first; second <= whole.length; second += 1) {
        const talk = admitted()
        const parts = [whole.subarray(0, first), whole.subarray(first, second), whole.subarray(second)]
        expect(textOf(parts.flatMap((part) => talk.output(part)))).toBe(expected)
      }
  })

  test('has a mark for bytes that are no text, also for half a character at the end', () => {
    const talk = admitted()
    expect(talk.output(Uint8Array.of(0xff, 0x61))).toEqual([output('\ufffda')])
    expect(talk.output(Uint8Array.of(0xf0, 0x9f))).toEqual([])
    expect(talk.session(exit)).toEqual([output('\ufffd'), { type: 'exit', code: 3, session_id: 'token' }])
  })

  test('keeps a byte order mark', () => {
    expect(admitted().output('\ufeffx')).toEqual([output('\ufeffx')])
  })

  test('is a whole screen where output was missed', () => {
    const talk = admitted()
    talk.output(Uint8Array.of(0xe2))
    const told = talk.session({ type: 'snapshot', at: 9, cols: 80, rows: 24, bytes: 3, exact: true })
    const screen = talk.codec.fromSession({ kind: 'data', stream: 'snapshot', payload: bytes('$ €') }, false)
    expect([...told, ...seen(screen)]).toEqual([output('\u001bc'), output('$ €')])
  })

  test('is null for a process that a signal ended', () => {
    expect(admitted().session({ ...exit, code: null, signal: 'SIGKILL' })).toEqual([
      { type: 'exit', code: null, session_id: 'token' },
    ])
  })

  test('is a text for what went wrong and does not end it', () => {
    const talk = admitted()
    const warning = {
      type: 'error',
      code: 'line_too_long',
      message: 'Cannot type this',
      fatal: false,
    } as const
    expect(talk.session(warning)).toEqual([{ type: 'error', data: 'Cannot type this' }])
    expect(talk.codec.closing()).toEqual({ code: 1000, reason: '' })
  })

  test('is the same for every session that is not there', () => {
    for (const code of ['session_not_found', 'session_gone']) {
      const talk = new Talk()
      const told = talk.session({ type: 'error', code, message: code, fatal: true })
      expect(told).toEqual([{ type: 'session_not_found' }])
      expect(talk.codec.closing()).toMatchObject({ code: 4001, reason: 'session_not_found' })
    }
  })
})

describe('what a client says', () => {
  test('reaches the session in its order and place', () => {
    const talk = admitted()
    expect([
      ...talk.client({ type: 'input', data: 'é' }),
      ...talk.client({ type: 'resize', cols: 120, rows: 40 }),
      ...talk.client({ type: 'resize' }),
      ...talk.client({ type: 'ping' }),
      ...talk.session({ type: 'pong', id: 0 }),
    ]).toEqual([
      { pass: 'é' },
      { pass: { type: 'resize', cols: 120, rows: 40, at: 2, seq: 1 } },
      { pass: { type: 'resize', cols: 80, rows: 24, at: 2, seq: 2 } },
      { pass: { type: 'ping', id: 0 } },
      { type: 'pong' },
    ])
  })

  test.each(['ls\n', '7', '"x"', '[1]', 'null', '{"type":'])('is input when it is no object: %s', (text) => {
    expect(admitted().client(text)).toEqual([{ pass: text }])
  })

  test.each([
    { type: 'input', data: 7 },
    { type: 'resize', cols: 0 },
    { type: 'resize', cols: 80.5 },
    { type: 'resize', rows: 1e9 },
    { type: 'exec', cmd: 'ls' },
    {},
  ])('is refused by name when it cannot be done: %p', (message) => {
    expect(admitted().client(message)).toEqual([{ type: 'error', data: expect.stringMatching(/^Cannot /) }])
  })

  test('a type that is said back holds nothing that a terminal would obey (threat T24)', () => {
    const [told] = admitted().client({ type: '\u001b]0;x\u0007\u202e' })
    expect(JSON.stringify(told)).toBe(
      JSON.stringify({
        type: 'error',
        data: 'Cannot use a message of type "]0;x": expected input, resize or ping',
      }),
    )
  })

  test('a viewer types nothing, and is told so', () => {
    const talk = admitted('viewer')
    expect(talk.client('rm -rf .')).toEqual([
      { type: 'error', data: 'Cannot take input: this connection is read-only' },
    ])
    expect(talk.client({ type: 'resize', cols: 1, rows: 1 }, true)).toEqual([])
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
  ])('a viewer gets nothing through to the session: %p (threat T5)', (message) => {
    const told = admitted('viewer', 'viewer').client(message, true)
    expect(told).toEqual([{ type: 'error', data: expect.any(String) }])
  })

  test('who may not drive types, and follows the size of others', () => {
    const talk = admitted('collaborator')
    expect(talk.client('x')).toEqual([{ pass: 'x' }])
    expect(talk.client({ type: 'resize', cols: 100, rows: 30 }, true)).toEqual([])
  })

  test('who may drive takes the size from whoever does not mind, and from nobody else', () => {
    const talk = admitted('collaborator', 'driver')
    expect(talk.client({ type: 'resize', cols: 100, rows: 30 }, false)).toEqual([])
    expect(talk.client({ type: 'resize', cols: 100, rows: 30 }, true)).toEqual([
      { pass: { type: 'take' } },
      { pass: { type: 'resize', cols: 100, rows: 30, at: 0, seq: 1 } },
    ])
  })

  test('counts from what the session took after another one took over', () => {
    const talk = admitted('driver')
    talk.client('abc')
    const role = { type: 'role', role: 'collaborator', epoch: 5, input: { at: 2, seq: 0 } } as const
    expect(talk.session(role)).toEqual([{ pass: { type: 'roleSeen', epoch: 5 } }])
    talk.session({ ...role, role: 'driver', epoch: 6 })
    expect(talk.client({ type: 'resize', cols: 9, rows: 9 })).toEqual([
      { pass: { type: 'resize', cols: 9, rows: 9, at: 2, seq: 1 } },
    ])
  })

  test('whoever may drive does when nobody is left who drives', () => {
    const presence = { type: 'presence', driver: null, attachments: [] } as const
    expect(admitted('collaborator', 'driver').session(presence, true)).toEqual([{ pass: { type: 'take' } }])
    expect(admitted('collaborator').session(presence, true)).toEqual([])
  })
})

describe('the connection', () => {
  test('stays when the process has ended: a front end would open another one', () => {
    const talk = admitted()
    talk.session(exit)
    expect(talk.codec.closing()).toBeUndefined()
    expect(talk.client({ type: 'ping' })).toEqual([{ pass: { type: 'ping', id: 0 } }])
  })

  test('goes with a sandbox that stops, whichever of the two is told first', () => {
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
