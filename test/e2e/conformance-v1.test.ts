import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { limits } from '@sandwire/protocol'
import {
  encodeFrame,
  eventually,
  OPCODE,
  openRawWebSocketOrThrow,
  type RawWebSocket,
  readProcessMemory,
} from '@sandwire/testing'
import {
  type UnaffectedPlainSession,
  openUnaffectedPlainSession,
} from './support/unaffected-plain-session.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** A message, or the exact text or bytes of one. */
type Message = Readonly<Record<string, unknown>> | string | Uint8Array

interface AbuseCase {
  readonly title: string
  /** Sent in order; `'HELLO'` stands for a valid hello. */
  readonly send: readonly Message[]
  /** Expected close code; absent when the connection must stay open. */
  readonly closes?: number
  /** What the process has read at the end; nothing by default. */
  readonly reads?: string
  /** The role that the URL requests; driver by default. */
  readonly role?: string
}

const HELLO = 'HELLO'

const BAD_FRAME = 4402
const FORBIDDEN = 4403
const VERSION_UNSUPPORTED = 4426
const ROLE_REFUSED = 4430
const RESUME_LOST = 4431
const DESYNC = 4432
const RATE_LIMITED = 4452

function helloWith(changes: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  const identity = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex')
  const good = {
    type: 'hello',
    version: 1,
    identity,
    resuming: false,
    received: 0,
    window: 65_536,
    cols: 80,
    rows: 24,
  }
  return { ...good, ...changes }
}

/** A valid hello with text inserted after its first brace. */
function helloText(inserted: string): string {
  return JSON.stringify(helloWith()).replace('{', `{${inserted},`)
}

const BEFORE_HELLO: readonly AbuseCase[] = [
  { title: 'input', send: [Buffer.from('early')], closes: BAD_FRAME },
  { title: 'an ack', send: [{ type: 'ack', output: 0 }], closes: BAD_FRAME },
  { title: 'a ping', send: [{ type: 'ping', id: 1 }], closes: BAD_FRAME },
  { title: 'a signal', send: [{ type: 'signal', signal: 'SIGKILL', seq: 1, at: 0 }], closes: BAD_FRAME },
  { title: 'take', send: [{ type: 'take' }], closes: BAD_FRAME },
]

const HELLOS: readonly AbuseCase[] = [
  { title: 'a second one', send: [HELLO, HELLO], closes: BAD_FRAME },
  { title: 'own property __proto__', send: [helloText('"__proto__":{"role":"driver"}')], closes: BAD_FRAME },
  { title: 'own property constructor', send: [helloText('"constructor":1')], closes: BAD_FRAME },
  { title: 'an environment with __proto__', send: [helloText('"env":{"__proto__":"x"}')], reads: '' },
  { title: 'an environment name with =', send: [helloWith({ env: { 'A=B': 'x' } })], closes: BAD_FRAME },
  { title: 'an environment value with NUL', send: [helloWith({ env: { A: 'a\0b' } })], closes: BAD_FRAME },
  { title: 'an environment of numbers', send: [helloWith({ env: { A: 1 } })], closes: BAD_FRAME },
  {
    title: 'too many environment entries',
    send: [
      helloWith({ env: Object.fromEntries(Array.from({ length: 257 }, (_, index) => [`A${index}`, ''])) }),
    ],
    closes: BAD_FRAME,
  },
  { title: 'an unknown property', send: [helloWith({ admin: true })], closes: BAD_FRAME },
  { title: 'no identity', send: [helloWith({ identity: undefined })], closes: BAD_FRAME },
  { title: 'a short identity', send: [helloWith({ identity: 'ab' })], closes: BAD_FRAME },
  { title: 'an identity in capitals', send: [helloWith({ identity: 'A'.repeat(32) })], closes: BAD_FRAME },
  { title: 'version 0', send: [helloWith({ version: 0 })], closes: BAD_FRAME },
  { title: 'version 2', send: [helloWith({ version: 2 })], closes: VERSION_UNSUPPORTED },
  { title: 'version "1"', send: [helloWith({ version: '1' })], closes: BAD_FRAME },
  { title: 'a window of 0', send: [helloWith({ window: 0 })], closes: BAD_FRAME },
  { title: 'a window of 2^53', send: [helloWith({ window: 2 ** 53 })], closes: BAD_FRAME },
  { title: 'a negative size', send: [helloWith({ cols: -1 })], closes: BAD_FRAME },
  { title: 'a huge size', send: [helloWith({ rows: 65_536 })], closes: BAD_FRAME },
  { title: 'a fractional size', send: [helloWith({ cols: 80.5 })], closes: BAD_FRAME },
  { title: 'received below 0', send: [helloWith({ received: -1 })], closes: BAD_FRAME },
  { title: 'a resume of an unknown attachment', send: [helloWith({ resuming: true })], closes: RESUME_LOST },
  { title: 'a role above the URL', send: [helloWith({ role: 'driver' })], role: 'viewer', closes: FORBIDDEN },
  { title: 'a role that does not exist', send: [helloWith({ role: 'root' })], closes: BAD_FRAME },
  { title: 'a name with a newline', send: [helloWith({ name: 'a\nb' })], closes: BAD_FRAME },
  {
    title: 'a name with a bidirectional override',
    send: [helloWith({ name: 'a\u202eb' })],
    closes: BAD_FRAME,
  },
]

const TEXTS: readonly AbuseCase[] = [
  { title: 'text that is not JSON', send: [HELLO, 'hello'], closes: BAD_FRAME },
  { title: 'empty text', send: [HELLO, ''], closes: BAD_FRAME },
  { title: 'JSON null', send: [HELLO, 'null'], closes: BAD_FRAME },
  { title: 'a JSON list', send: [HELLO, '[{"type":"take"}]'], closes: BAD_FRAME },
  { title: 'a JSON number', send: [HELLO, '1e999'], closes: BAD_FRAME },
  { title: 'an unknown type', send: [HELLO, { type: 'format' }], closes: BAD_FRAME },
  { title: 'a type named like a prototype method', send: [HELLO, { type: 'toString' }], closes: BAD_FRAME },
  { title: 'a type that only servers send', send: [HELLO, { type: 'exit', code: 0 }], closes: BAD_FRAME },
  { title: 'no type', send: [HELLO, {}], closes: BAD_FRAME },
  { title: 'a type in the prototype', send: [HELLO, '{"__proto__":{"type":"take"}}'], closes: BAD_FRAME },
  { title: 'JSON 60,000 deep', send: [HELLO, '['.repeat(60_000)], closes: BAD_FRAME },
  {
    title: 'JSON 60,000 deep in a property',
    send: [HELLO, `{"type":"ping","id":${'['.repeat(30_000)}${']'.repeat(30_000)}}`],
    closes: BAD_FRAME,
  },
  {
    title: 'a control message of 200,000 characters',
    send: [HELLO, `{"type":"ping","id":1${' '.repeat(200_000)}}`],
    closes: BAD_FRAME,
  },
  {
    title: 'a plain resize without a number',
    send: [HELLO, { type: 'resize', cols: 80, rows: 24 }],
    closes: BAD_FRAME,
  },
]

const OFFSETS: readonly AbuseCase[] = [
  { title: 'an ack beyond what was sent', send: [HELLO, { type: 'ack', output: 1 }], closes: DESYNC },
  {
    title: 'an ack of 2^53 - 1',
    send: [HELLO, { type: 'ack', output: Number.MAX_SAFE_INTEGER }],
    closes: DESYNC,
  },
  { title: 'an ack of 2^53', send: [HELLO, { type: 'ack', output: 2 ** 53 }], closes: BAD_FRAME },
  { title: 'an ack below 0', send: [HELLO, { type: 'ack', output: -1 }], closes: BAD_FRAME },
  { title: 'an ack of a fraction', send: [HELLO, { type: 'ack', output: 0.5 }], closes: BAD_FRAME },
  { title: 'an ack of nothing new', send: [HELLO, { type: 'ack', output: 0 }], reads: '' },
  { title: 'a sequence number that jumps', send: [HELLO, { type: 'eof', seq: 2, at: 0 }], closes: DESYNC },
  { title: 'sequence number 0', send: [HELLO, { type: 'eof', seq: 0, at: 0 }], closes: BAD_FRAME },
  { title: 'an offset ahead of the input', send: [HELLO, { type: 'eof', seq: 1, at: 5 }], closes: DESYNC },
  {
    title: 'an offset behind the input',
    send: [HELLO, Buffer.from('abc'), { type: 'eof', seq: 1, at: 2 }],
    closes: DESYNC,
    reads: 'abc',
  },
  {
    title: 'a sequence number that repeats is applied once',
    send: [
      HELLO,
      { type: 'resize', seq: 1, at: 0, cols: 80, rows: 24 },
      { type: 'resize', seq: 1, at: 0, cols: 1, rows: 1 },
    ],
    reads: '',
  },
  {
    title: 'more input than was granted',
    send: [HELLO, new Uint8Array(limits.INPUT_WINDOW_BYTES + 1)],
    closes: BAD_FRAME,
  },
]

const ROLES: readonly AbuseCase[] = [
  { title: 'input from a viewer', send: [HELLO, Buffer.from('x')], role: 'viewer', closes: ROLE_REFUSED },
  {
    title: 'eof from a viewer',
    send: [HELLO, { type: 'eof', seq: 1, at: 0 }],
    role: 'viewer',
    closes: ROLE_REFUSED,
  },
  {
    title: 'a signal from a viewer',
    send: [HELLO, { type: 'signal', signal: 'SIGKILL', seq: 1, at: 0 }],
    role: 'viewer',
    closes: ROLE_REFUSED,
  },
  {
    title: 'a resize from a collaborator',
    send: [HELLO, { type: 'resize', seq: 1, at: 0, cols: 1, rows: 1 }],
    role: 'collaborator',
    closes: ROLE_REFUSED,
  },
  { title: 'take from a viewer', send: [HELLO, { type: 'take' }], role: 'viewer', closes: FORBIDDEN },
  {
    title: 'input from a driver that asked for the viewer role',
    send: [helloWith({ role: 'viewer' }), Buffer.from('x')],
    closes: ROLE_REFUSED,
  },
  {
    title: 'a signal that does not exist',
    send: [HELLO, { type: 'signal', signal: 'SIGNOPE', seq: 1, at: 0 }],
    closes: BAD_FRAME,
  },
  {
    title: 'a signal by number',
    send: [HELLO, { type: 'signal', signal: 9, seq: 1, at: 0 }],
    closes: BAD_FRAME,
  },
  {
    title: 'the lease given to an unknown attachment',
    send: [HELLO, { type: 'give', to: 'a999' }],
    reads: '',
  },
  {
    title: 'the lease given to an invalid id',
    send: [HELLO, { type: 'give', to: '../a1' }],
    closes: BAD_FRAME,
  },
]

describe('abuse of sandwire.v1', () => {
  let sandboxd: RunningSandboxd
  let unaffected: UnaffectedPlainSession
  let count = 0

  beforeAll(async () => {
    sandboxd = await startSandboxd()
    unaffected = await openUnaffectedPlainSession(sandboxd)
  })

  afterAll(async () => {
    await unaffected[Symbol.asyncDispose]()
    expect(await sandboxd.stop()).toEqual({ code: 0, signal: null })
  })

  /** `keepSeconds` lets the process outlive the connection, so that it can finish reading. */
  function open(file: string, role?: string, keepSeconds = 0): Promise<RawWebSocket> {
    const query = new URLSearchParams([
      ['cmd', 'tee'],
      ['arg', file],
      ['keep', String(keepSeconds)],
    ])
    if (role !== undefined) query.set('role', role)
    return openRawWebSocketOrThrow({
      port: sandboxd.port,
      path: `/attach?${query}`,
      headers: sandboxd.headers,
      subprotocols: ['sandwire.v1'],
    })
  }

  function encodeMessage(message: Message): Uint8Array {
    if (message === HELLO) return encodeMessage(helloWith())
    if (message instanceof Uint8Array) return encodeFrame({ payload: message })
    const payload = typeof message === 'string' ? message : JSON.stringify(message)
    return encodeFrame({ opcode: OPCODE.text, payload })
  }

  async function readText(file: string): Promise<string> {
    return (await Bun.file(file).exists()) ? readFile(file, 'utf8') : ''
  }

  async function run({ send, closes, reads = '', role }: AbuseCase): Promise<void> {
    const file = join(sandboxd.workspace, `case-${(count += 1)}`)
    await using socket = await open(file, role, reads === '' ? 0 : 5)
    await socket.sendBytes(Buffer.concat(send.map(encodeMessage)))
    if (closes === undefined) {
      await socket.sendBytes(encodeMessage(Buffer.from('.')))
      await eventually(async () => (await readText(file)) === `${reads}.`, { what: 'the process to read' })
    } else {
      const { frame, how } = await socket.closed
      expect({ how, code: frame?.code }).toEqual({ how: 'fin', code: closes })
      if (reads !== '')
        await eventually(async () => (await readText(file)) === reads, { what: 'the process to read' })
      expect(await readText(file)).toBe(reads)
    }
    await unaffected.check()
  }

  const tables = {
    'before hello': BEFORE_HELLO,
    'hello with': HELLOS,
    text: TEXTS,
    offsets: OFFSETS,
    roles: ROLES,
  }

  describe.each(Object.entries(tables))('%s', (_, cases) => {
    test.each(cases.map((each) => [each.title, each] as const))('%s', async (__, each) => run(each))
  })

  test('rate limits endless pings', async () => {
    await using socket = await open(join(sandboxd.workspace, 'pings'))
    const before = readProcessMemory(sandboxd.pid).rssBytes
    const pings = Array.from({ length: 100_000 }, (_, id) => encodeMessage({ type: 'ping', id }))
    await socket.sendBytes(encodeMessage(HELLO))
    await socket.sendBytes(Buffer.concat(pings)).catch(() => {})
    expect((await socket.closed).frame?.code).toBe(RATE_LIMITED)
    await unaffected.check()
    expect(readProcessMemory(sandboxd.pid).rssBytes - before).toBeLessThan(64 * 1024 * 1024)
  })

  test('a hundred concurrent sessions leave another one unaffected', async () => {
    const sockets = await Promise.all(
      Array.from({ length: 100 }, (_, index) => open(join(sandboxd.workspace, `many-${index}`))),
    )
    await Promise.all(sockets.map((socket) => socket.sendBytes(encodeMessage(HELLO))))
    await unaffected.check()
    for (const socket of sockets) socket.reset()
    await unaffected.check()
  })
})
