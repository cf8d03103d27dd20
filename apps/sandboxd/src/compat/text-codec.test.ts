import { describe, expect, test } from 'bun:test'
import type { Role, ServerMessage } from '@sandwire/protocol'
import type { CodecEffect } from './session-codec.ts'
import { TextCodec } from './text-codec.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** What the client draws, and the frames to the session. */
function seen(effects: readonly CodecEffect[]): unknown[] {
  return effects.map((effect) => {
    if (effect.do === 'toClient') return effect.text
    const { frame } = effect
    return { pass: typeof frame === 'string' ? (JSON.parse(frame) as unknown) : Array.from(frame) }
  })
}

const welcome = (role: Role): ServerMessage => ({
  type: 'welcome',
  version: 1,
  session: 's',
  attachment: 'a1',
  role,
  authority: role,
  epoch: 1,
  mode: 'pty',
  output: 0,
  input: { at: 0, seq: 0 },
  inputWindow: 1,
  keepSeconds: 60,
  cols: 80,
  rows: 24,
})
const exit = (end: { code: number | null; signal: string | null }): ServerMessage => ({
  type: 'exit',
  ...end,
  outputEnd: 0,
  truncated: false,
})

function admitted(role: Role = 'driver'): TextCodec {
  const codec = new TextCodec()
  codec.fromSession({ kind: 'control', message: welcome(role) })
  return codec
}

const session = (codec: TextCodec, message: ServerMessage): unknown[] =>
  seen(codec.fromSession({ kind: 'control', message }))

describe('what a text client draws', () => {
  test('[Y2] is complete characters, however the output is divided', () => {
    const text = 'héllo 😀 — ✓\r\n'
    const output = bytes(text)
    for (let size = 1; size <= 5; size += 1) {
      const codec = admitted()
      let drawn = ''
      for (let at = 0; at < output.byteLength; at += size)
        for (const each of seen(codec.output(output.subarray(at, at + size)))) {
          expect(String(each).isWellFormed()).toBe(true)
          expect(String(each)).not.toContain('\ufffd')
          drawn += String(each)
        }
      expect(drawn).toBe(text)
    }
  })

  test('[Y1] is a screen first, on a cleared terminal', () => {
    const codec = admitted()
    codec.output(new Uint8Array([0xf0, 0x9f]))
    const snapshot = { type: 'snapshot', at: 9, cols: 80, rows: 24, bytes: 2, exact: true } as const
    expect(session(codec, snapshot)).toEqual(['\u001bc'])
    // The first bytes of a character from before it are not joined with the screen.
    expect(seen(codec.fromSession({ kind: 'data', stream: 'snapshot', payload: bytes('$ ') }))).toEqual([
      '$ ',
    ])
  })

  test('[Y4] is an error as a line of text, without control characters', () => {
    const error = { type: 'error', code: 'line_too_long', message: 'Too\u001b long', fatal: false } as const
    expect(session(admitted(), error)).toEqual(['\r\n[Too  long]\r\n'])
  })

  test('is nothing for messages about the connection', () => {
    expect(session(admitted(), { type: 'pong', id: 0 })).toEqual([])
    expect(session(admitted(), { type: 'gap', from: 0, to: 9 })).toEqual([])
  })
})

describe('what a text client types', () => {
  test('[Y3] is input, as text or as bytes', () => {
    const codec = admitted()
    expect(seen(codec.fromClient('é{"type":"resize"}'))).toEqual([
      { pass: Array.from(bytes('é{"type":"resize"}')) },
    ])
    expect(seen(codec.fromClient(new Uint8Array([3])))).toEqual([{ pass: [3] }])
    expect(seen(codec.fromClient(''))).toEqual([])
  })

  test('[Y3] is answered with a bell where the client only watches', () => {
    expect(seen(admitted('viewer').fromClient('rm -rf .\n'))).toEqual(['\u0007'])
    const codec = admitted()
    const role = { type: 'role', role: 'viewer', epoch: 2, input: { at: 0, seq: 0 } } as const
    expect(session(codec, role)).toEqual([{ pass: { type: 'roleSeen', epoch: 2 } }])
    expect(seen(codec.fromClient('x'))).toEqual(['\u0007'])
  })

  test('is refused before the session has accepted the client', () => {
    expect(seen(new TextCodec().fromClient('x'))).toEqual(['\u0007'])
  })
})

describe('the close of a text client', () => {
  test.each([
    [{ code: 3, signal: null }, 'exit 3'],
    [{ code: null, signal: 'SIGTERM' }, 'exit 143'],
  ])('[Y4] states the exit status of %j', (end, reason) => {
    const codec = admitted()
    codec.output(new Uint8Array([0xc3]))
    expect(session(codec, exit(end))).toEqual(['\ufffd'])
    expect(codec.closing()).toEqual({ code: 1000, reason })
  })

  test('[Y4] states the code of a fatal error', () => {
    const codec = admitted()
    session(codec, { type: 'error', code: 'revoked', message: 'Revoked', fatal: true })
    expect(codec.closing()).toEqual({ code: 4435, reason: 'revoked' })
  })
})

test('the hello has the size that the client stated, else the size of the terminal', () => {
  const size = { cols: 100, rows: 30 }
  expect(JSON.parse(new TextCodec().hello('i', size))).toMatchObject(size)
  expect(JSON.parse(new TextCodec({ cols: 70, rows: 20 }).hello('i', size))).toMatchObject({
    cols: 70,
    rows: 20,
  })
})
