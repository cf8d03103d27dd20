import { describe, expect, test } from 'bun:test'
import { COMPAT_HISTORY_BYTES } from '@sandwire/internal-api'
import { decodeExecFrame, encodeInput, formatExecQuery } from '../src/providers/sprites/exec-frames.ts'
import { InputQueue } from '../src/providers/sprites/input-queue.ts'
import { ClaudeCodec } from '../src/providers/sprites/claude-codec.ts'
import { ClaudeSession } from '../src/providers/sprites/claude-session.ts'
import { ExecBridge, type BridgedExec } from '../src/providers/sprites/exec-bridge.ts'
import type { ExecCodec, ExecEffect, ExecOutput } from '../src/providers/sprites/exec-codec.ts'
import type { ExecEvent } from '../src/providers/sprites/exec-connection.ts'
import { TerminalCodec } from '../src/providers/sprites/terminal-codec.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (message: object): { kind: 'text'; text: string } => ({
  kind: 'text',
  text: JSON.stringify(message),
})
const binary = (...values: number[]): { kind: 'binary'; bytes: Uint8Array } => ({
  kind: 'binary',
  bytes: new Uint8Array(values),
})

describe('frames of the exec API', () => {
  test('carry both outputs and the exit of a process without a terminal', () => {
    const decode = (...values: number[]) => decodeExecFrame(binary(...values), false)
    expect(decode(1, 104)).toEqual({ kind: 'output', stream: 'stdout', bytes: bytes('h') })
    expect(decode(2, 104)).toEqual({ kind: 'output', stream: 'stderr', bytes: bytes('h') })
    expect(decode(3, 7)).toEqual({ kind: 'exit', code: 7, isLast: true })
    expect(decode(3, 0, 0, 1, 2)).toEqual({ kind: 'exit', code: 258, isLast: true })
    expect(decode(9, 1)).toEqual({ kind: 'other' })
    expect([...encodeInput(bytes('h'), false)]).toEqual([0, 104])
  })

  test('are raw bytes for a terminal, whose exit is text', () => {
    expect(decodeExecFrame(binary(3, 7), true)).toEqual({
      kind: 'output',
      stream: 'stdout',
      bytes: new Uint8Array([3, 7]),
    })
    expect(decodeExecFrame(text({ type: 'exit', exit_code: 143 }), true)).toEqual({
      kind: 'exit',
      code: 143,
      isLast: false,
    })
    expect([...encodeInput(bytes('h'), true)]).toEqual([104])
  })

  test('name the session by text or, in earlier versions, by number', () => {
    for (const session_id of ['20', 20])
      expect(decodeExecFrame(text({ type: 'session_info', session_id, created: 5 }), true)).toEqual({
        kind: 'info',
        id: '20',
        createdSeconds: 5,
      })
    for (const session_id of ['../x', '', undefined, 'a'.repeat(65)])
      expect(decodeExecFrame(text({ type: 'session_info', session_id }), true)).toEqual({ kind: 'error' })
  })

  test('tell how much earlier output follows, and whether some is missing', () => {
    const debug = (msg: string) => decodeExecFrame(text({ type: 'debug', msg }), false)
    const fast = 'fast_path attach_err=session has exited exit_code=0 history_len='
    expect(debug(`${fast}65536`)).toEqual({ kind: 'history', bytes: 65_536, isCut: true })
    expect(debug(`${fast}100`)).toEqual({ kind: 'history', bytes: 100, isCut: false })
    expect(debug('normal_path history_len=0')).toEqual({ kind: 'history', bytes: 0, isCut: false })
    expect(debug('session_created cmd=bash')).toEqual({ kind: 'other' })
    expect(decodeExecFrame({ kind: 'text', text: 'not JSON' }, false)).toEqual({ kind: 'other' })
    expect(decodeExecFrame(text({ type: 'error', message: 'x' }), false)).toEqual({ kind: 'error' })
  })

  test('start a command that ends some time after its last client, and never stays for ever', () => {
    const command = {
      argv: ['env', 'A=b'],
      env: { X: '1' },
      dir: '/w',
      isTty: true,
      cols: 80,
      rows: 24,
    } as const
    const query = new URLSearchParams(formatExecQuery({ ...command, keepSeconds: 0 }))
    expect(query.getAll('cmd')).toEqual(['env', 'A=b'])
    expect(Object.fromEntries(query)).toMatchObject({
      path: 'env',
      stdin: 'true',
      tty: 'true',
      env: 'X=1',
      dir: '/w',
      max_run_after_disconnect: '1s',
    })
  })
})

describe('input that waits for the sprite', () => {
  const write = (content: string) => ({ do: 'write', bytes: bytes(content) }) as const
  const resize = (cols: number) => ({ do: 'resize', cols, rows: 1 }) as const

  test('keeps its order, and only the last of several resizes', () => {
    const queue = new InputQueue({ maxBytes: 100, maxMessages: 10 })
    for (const input of [write('a'), resize(1), resize(2), write('b'), resize(3), write('c')])
      queue.push(input)
    expect([queue.take(), queue.take(), queue.take(), queue.take()]).toEqual([
      [write('a'), write('b')],
      [resize(3)],
      [write('c')],
      [],
    ])
  })

  test('is bounded by bytes and messages, and takes more once some was taken', () => {
    const byBytes = new InputQueue({ maxBytes: 3, maxMessages: 10 })
    expect([byBytes.push(write('ab')), byBytes.push(write('cd')), byBytes.push(write('c'))]).toEqual([
      true,
      false,
      true,
    ])
    byBytes.take()
    expect([byBytes.isEmpty, byBytes.push(write('abc'))]).toEqual([true, true])
    const byMessages = new InputQueue({ maxBytes: 100, maxMessages: 2 })
    expect([byMessages.push(resize(1)), byMessages.push(resize(2)), byMessages.push(write('a'))]).toEqual([
      true,
      true,
      true,
    ])
    expect(byMessages.push(write('b'))).toBe(false)
  })
})

describe('the messages of a terminal', () => {
  const seen = (effects: readonly ExecEffect[]): unknown[] =>
    effects.map((effect) => {
      if (effect.do === 'toClient') return JSON.parse(effect.text) as unknown
      return effect.do === 'write' ? { write: new TextDecoder().decode(effect.bytes) } : effect
    })

  test('end a history at its newest byte, after a newline or a whole character', () => {
    const codec = new TerminalCodec('name', 'driver', 'expected')
    const [history] = seen(codec.output({ bytes: bytes(`${'x'.repeat(COMPAT_HISTORY_BYTES)}\nlast ü`) })) as {
      data: string
    }[]
    expect(history?.data).toEndWith('\nlast ü')
    expect(Buffer.byteLength(history?.data ?? '')).toBeLessThanOrEqual(COMPAT_HISTORY_BYTES)
    const short = new TerminalCodec('name', 'driver', 'expected')
    expect(
      seen(short.output({ bytes: bytes(`${'y'.repeat(300)}\n${'x'.repeat(COMPAT_HISTORY_BYTES - 200)}`) })),
    ).toEqual([{ type: 'history', data: 'x'.repeat(COMPAT_HISTORY_BYTES - 200) }])
    expect(new TerminalCodec('name', 'driver', 'expected').output({ bytes: new Uint8Array(0) })).toEqual([])
  })

  test('split no character between outputs', () => {
    const codec = new TerminalCodec('name', 'driver', 'none')
    const [first, second] = [bytes('€').subarray(0, 2), bytes('€').subarray(2)]
    expect(codec.output({ bytes: first })).toEqual([])
    expect(seen(codec.output({ bytes: second }))).toEqual([{ type: 'output', data: '€', session_id: 'name' }])
    codec.output({ bytes: first })
    expect(seen(codec.exit(3))).toEqual([
      { type: 'output', data: '\ufffd', session_id: 'name' },
      { type: 'exit', code: 3, session_id: 'name' },
    ])
  })

  test('type and resize as the role allows, and only answer pings after the exit', () => {
    const input = JSON.stringify({ type: 'input', data: 'a' })
    const resize = JSON.stringify({ type: 'resize', cols: 9, rows: 8 })
    const asked = (role: 'driver' | 'collaborator' | 'viewer') => {
      const codec = new TerminalCodec('name', role, 'none')
      return [seen(codec.fromClient(input)), seen(codec.fromClient(resize))]
    }
    expect(asked('driver')).toEqual([[{ write: 'a' }], [{ do: 'resize', cols: 9, rows: 8 }]])
    expect(asked('collaborator')).toEqual([[{ write: 'a' }], []])
    expect(asked('viewer')).toEqual([
      [{ type: 'error', data: 'Cannot take input: this connection is read-only' }],
      [],
    ])
    const codec = new TerminalCodec('name', 'driver', 'none')
    codec.exit(0)
    expect([codec.fromClient(input), codec.fromClient(resize)]).toEqual([[], []])
    expect(seen(codec.fromClient('{"type":"ping"}'))).toEqual([{ type: 'pong' }])
  })
})

function bridgeOf(
  exec: BridgedExec,
  sent: (text: string) => void,
  codec: ExecCodec = new TerminalCodec('name', 'driver', 'none'),
): ExecBridge {
  const client = { send: (message: string | Uint8Array) => sent(String(message)), close: () => undefined }
  return new ExecBridge(client, exec, codec, {
    nowMs: () => 0,
    every: () => () => undefined,
    yieldTurn: () => Bun.sleep(0),
    heartbeatMs: 1,
    onActivity: () => undefined,
    onExit: () => undefined,
    onRefuse: () => undefined,
    toOthers: () => undefined,
    onEnd: () => undefined,
  })
}

describe('a connection to a terminal', () => {
  const OUTPUT = { kind: 'output', stream: 'stdout', bytes: new Uint8Array(16 * 1024) } as const
  /** A process that always has output, until `count` reads. */
  function execOf(count: number, onRead: () => void = () => undefined): BridgedExec {
    let reads = 0
    return {
      read: async () => {
        onRead()
        reads += 1
        return reads > count ? { kind: 'exit', code: 0 } : OUTPUT
      },
      readWithin: async () => 'none',
      write: async () => undefined,
      resize: async () => undefined,
      close: () => undefined,
    }
  }

  test('leaves turns to others while it has much output', async () => {
    let reads = 0
    const flood = bridgeOf(
      execOf(100, () => (reads += 1)),
      () => undefined,
    ).run()
    // Work that came meanwhile, as that of another terminal.
    const { promise, resolve } = Promise.withResolvers<number>()
    setTimeout(() => resolve(reads), 0)
    expect(await promise).toBeLessThan(50)
    await flood
    expect(reads).toBe(101)
  })

  test('ends when more input waits than may, and says so', async () => {
    const sent: string[] = []
    const stuck = { ...execOf(0), write: () => new Promise<void>(() => undefined) }
    const bridge = bridgeOf(stuck, (text) => void sent.push(text))
    for (let count = 0; count < 10; count++)
      bridge.receive(JSON.stringify({ type: 'input', data: 'x'.repeat(1024 * 1024) }))
    expect(sent).toEqual(['{"type":"error","data":"Cannot take more input: the process does not read it"}'])
  })
})

describe('a connection to Claude Code', () => {
  const outputOf = (...ids: readonly string[]): ExecOutput => ({
    kind: 'output',
    stream: 'stdout',
    bytes: bytes(ids.map((uuid) => `${JSON.stringify({ type: 'assistant', uuid })}\n`).join('')),
  })
  const connected = { type: 'system', subtype: 'connected', session_id: 'token' }

  /** A client that joins when `b` was the last line that any client was sent; `read` has what the process wrote. */
  function join(historyBytes: number, read: () => Promise<ExecEvent | undefined>) {
    const session = new ClaudeSession(ClaudeSession.begin({}), () => undefined)
    session.sent('assistant b', 2)
    const exec = {
      read,
      readWithin: read,
      write: async () => undefined,
      resize: async () => undefined,
      close: () => undefined,
    }
    const sent: unknown[] = []
    const codec = new ClaudeCodec({
      name: 'token',
      session,
      isNew: false,
      historyBytes,
      mayInput: true,
      mintId: () => 'id',
    })
    const bridge = bridgeOf(exec, (text) => void sent.push(JSON.parse(text)), codec)
    return { bridge, session, sent }
  }

  test('takes no line for sent that comes after the client left', async () => {
    const seen = outputOf('b')
    const events = [seen, outputOf('c'), outputOf('d')]
    const { bridge, session, sent } = join(seen.bytes.length, async () => {
      const event = events.shift()
      if (events.length === 0) bridge.clientClosed(1000)
      return event
    })
    await bridge.run()
    expect(sent).toMatchObject([connected, { uuid: 'c' }])
    expect(session.mark).toEqual({ id: 'assistant c', count: 3 })
  })

  test.each([
    ['the client', true],
    ['the sprite', false],
  ])('takes no earlier line for sent when %s leaves during the replay', async (_, isClient) => {
    const events = [outputOf('a')]
    const { bridge, session, sent } = join(10_000, async () => {
      const event = events.shift()
      if (event === undefined && isClient) bridge.clientClosed(1000)
      return event ?? (isClient ? outputOf('b', 'c') : undefined)
    })
    await bridge.run()
    expect(session.mark).toEqual({ id: 'assistant b', count: 2 })
    expect(JSON.stringify(sent)).not.toContain('may be missing')
  })
})
