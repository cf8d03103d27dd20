import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  encodeClosePayload,
  encodeFrame,
  eventually,
  type FrameSpec,
  OPCODE,
  openRawWebSocketOrThrow,
  type RawWebSocket,
} from '@sandwire/testing'
import {
  type UnaffectedPlainSession,
  openUnaffectedPlainSession,
} from './support/unaffected-plain-session.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

type Dialect = 'plain' | 'v1'

/** How a server that conforms to RFC 6455 handles a sequence of frames. */
interface FrameCase {
  /** Starts with the section of RFC 6455 that requires it. */
  readonly title: string
  /** Sent in one write each. */
  readonly send: readonly (FrameSpec | Uint8Array)[]
  /** Code of the close frame, `null` for one without a code; absent when the connection must stay open. */
  readonly closes?: number | null
  /** What the process has read at the end; nothing by default. */
  readonly reads?: string
  /** Payloads of the expected pongs. */
  readonly pongs?: readonly string[]
}

/** Largest message that the server accepts. */
const MAX_MESSAGE_BYTES = 1024 * 1024

const { close, continuation, ping, pong, text } = OPCODE

const FRAMING: readonly FrameCase[] = [
  { title: '5.6 binary message', send: [{ payload: 'a' }], reads: 'a' },
  { title: '5.6 empty binary message', send: [{ payload: '' }] },
  { title: '5.2 length in its longest form', send: [{ declaredLength: 1n, payload: 'a' }], reads: 'a' },
  { title: '5.2 frame split at every byte', send: splitBytes(encodeFrame({ payload: 'abc' })), reads: 'abc' },
  {
    title: '5.2 two messages in one segment',
    send: [join2({ payload: 'a' }, { payload: 'b' })],
    reads: 'ab',
  },
  { title: '5.3 masking key of zeros', send: [{ mask: new Uint8Array(4), payload: 'a' }], reads: 'a' },
  { title: '5.1 unmasked binary', send: [{ mask: false, payload: 'a' }], closes: 1002 },
  { title: '5.1 unmasked ping', send: [{ mask: false, opcode: ping }], closes: 1002 },
  { title: '5.1 unmasked close', send: [{ mask: false, opcode: close }], closes: 1002 },
  { title: '5.1 HTTP instead of frames', send: [Buffer.from('GET / HTTP/1.1\r\n\r\n')], closes: 1002 },
  { title: '5.2 reserved bit 1', send: [{ rsv1: true, payload: 'a' }], closes: 1002 },
  { title: '5.2 reserved bit 2', send: [{ rsv2: true, payload: 'a' }], closes: 1002 },
  { title: '5.2 reserved bit 3', send: [{ rsv3: true, payload: 'a' }], closes: 1002 },
  { title: '5.2 reserved bit on a ping', send: [{ opcode: ping, rsv1: true }], closes: 1002 },
  {
    title: '5.2 reserved bit on a continuation',
    send: [
      { fin: false, payload: 'a' },
      { opcode: continuation, rsv1: true },
    ],
    closes: 1002,
  },
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) => ({
    title: `5.2 reserved opcode ${opcode}`,
    send: [{ opcode, payload: 'a' }],
    closes: 1002,
  })),
  {
    title: '5.2 valid message before an invalid one',
    send: [{ payload: 'a' }, { rsv2: true }],
    closes: 1002,
    reads: 'a',
  },
]

const FRAGMENTATION: readonly FrameCase[] = [
  {
    title: '5.4 two fragments',
    send: [
      { fin: false, payload: 'a' },
      { opcode: continuation, payload: 'b' },
    ],
    reads: 'ab',
  },
  {
    title: '5.4 ping between fragments',
    send: [
      { fin: false, payload: 'a' },
      { opcode: ping, payload: 'p' },
      { opcode: continuation, payload: 'b' },
    ],
    reads: 'ab',
    pongs: ['p'],
  },
  {
    title: '5.4 empty first and last fragment',
    send: [{ fin: false }, { opcode: continuation, fin: false, payload: 'a' }, { opcode: continuation }],
    reads: 'a',
  },
  { title: '5.4 continuation of nothing', send: [{ opcode: continuation, payload: 'a' }], closes: 1002 },
  {
    title: '5.4 unfinished continuation of nothing',
    send: [{ opcode: continuation, fin: false, payload: 'a' }],
    closes: 1002,
  },
  {
    title: '5.4 binary inside fragments',
    send: [{ fin: false, payload: 'a' }, { payload: 'b' }],
    closes: 1002,
  },
  {
    title: '5.4 text inside fragments',
    send: [
      { fin: false, payload: 'a' },
      { opcode: text, payload: '{}' },
    ],
    closes: 1002,
  },
  {
    title: '5.4 continuation after the last fragment',
    send: [
      { fin: false, payload: 'a' },
      { opcode: continuation, payload: 'b' },
      { opcode: continuation, payload: 'c' },
    ],
    closes: 1002,
    reads: 'ab',
  },
  {
    title: '5.4 close inside fragments',
    send: [
      { fin: false, payload: 'a' },
      { opcode: close, payload: encodeClosePayload(1000) },
    ],
    closes: 1000,
  },
]

const CONTROL: readonly FrameCase[] = [
  { title: '5.5.2 ping', send: [{ opcode: ping, payload: 'hello' }], pongs: ['hello'] },
  { title: '5.5.2 empty ping', send: [{ opcode: ping }], pongs: [''] },
  {
    title: '5.5.2 longest ping',
    send: [{ opcode: ping, payload: 'x'.repeat(125) }],
    pongs: ['x'.repeat(125)],
  },
  { title: '5.5 ping of 126 bytes', send: [{ opcode: ping, payload: 'x'.repeat(126) }], closes: 1002 },
  {
    title: '5.5 ping with the long length',
    send: [{ opcode: ping, declaredLength: 1n, payload: 'x' }],
    closes: 1002,
  },
  { title: '5.5 fragmented ping', send: [{ opcode: ping, fin: false, payload: 'x' }], closes: 1002 },
  { title: '5.5.3 unsolicited pong', send: [{ opcode: pong, payload: 'x' }] },
  { title: '5.5 pong of 126 bytes', send: [{ opcode: pong, payload: 'x'.repeat(126) }], closes: 1002 },
  { title: '5.5 fragmented pong', send: [{ opcode: pong, fin: false }], closes: 1002 },
  {
    title: '5.5 fragmented close',
    send: [{ opcode: close, fin: false, payload: encodeClosePayload(1000) }],
    closes: 1002,
  },
  {
    title: '5.5 close of 126 bytes',
    send: [{ opcode: close, payload: encodeClosePayload(1000, 'x'.repeat(124)) }],
    closes: 1002,
  },
]

const CLOSING: readonly FrameCase[] = [
  { title: '5.5.1 close without a code', send: [{ opcode: close }], closes: null },
  { title: '5.5.1 close of 1 byte', send: [{ opcode: close, payload: new Uint8Array([3]) }], closes: 1002 },
  {
    title: '5.5.1 longest reason',
    send: [{ opcode: close, payload: encodeClosePayload(1000, 'x'.repeat(123)) }],
    closes: 1000,
  },
  ...[1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999].map(
    (code) => ({
      title: `7.4 close code ${code}`,
      send: [{ opcode: close, payload: encodeClosePayload(code) }],
      closes: code,
    }),
  ),
  ...[0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map((code) => ({
    title: `7.4 close code ${code}, which must not be sent`,
    send: [{ opcode: close, payload: encodeClosePayload(code) }],
    closes: 1002,
  })),
  {
    title: '5.5.1 reason that is not UTF-8',
    send: [{ opcode: close, payload: new Uint8Array([0x03, 0xe8, 0xff, 0xfe]) }],
    closes: 1007,
  },
  {
    title: '5.5.1 reason truncated inside a character',
    send: [{ opcode: close, payload: new Uint8Array([0x03, 0xe8, 0xe2, 0x82]) }],
    closes: 1007,
  },
  {
    title: '5.5.1 data after close',
    send: [join2({ opcode: close, payload: encodeClosePayload(1000) }, { payload: 'late' })],
    closes: 1000,
  },
  {
    title: '5.5.1 close after close',
    send: [
      join2(
        { opcode: close, payload: encodeClosePayload(1000) },
        { opcode: close, payload: encodeClosePayload(1001) },
      ),
    ],
    closes: 1000,
  },
]

const SIZES: readonly FrameCase[] = [
  { title: '10.4 a large message', send: [{ payload: 'x'.repeat(200_000) }], reads: 'x'.repeat(200_000) },
  {
    title: '10.4 one byte too many',
    send: [{ payload: new Uint8Array(MAX_MESSAGE_BYTES + 1) }],
    closes: 1009,
  },
  {
    title: '10.4 too large in fragments',
    send: [
      { fin: false, payload: new Uint8Array(600_000) },
      { opcode: continuation, payload: new Uint8Array(600_000) },
    ],
    closes: 1009,
  },
  {
    title: '10.4 too large before the last fragment',
    send: [
      { fin: false, payload: new Uint8Array(600_000) },
      { opcode: continuation, fin: false, payload: new Uint8Array(600_000) },
    ],
    closes: 1009,
  },
  ...[
    ['2^21', 1n << 21n],
    ['2^31', 1n << 31n],
    ['2^32', 1n << 32n],
    ['2^32 + 1, which 32 bits make 1', (1n << 32n) + 1n],
    ['2^63 - 1', (1n << 63n) - 1n],
    ['2^63, whose first bit must be 0', 1n << 63n],
    ['2^64 - 1', (1n << 64n) - 1n],
  ].map(([name, declaredLength]) => ({
    title: `5.2 declared length ${name}`,
    send: [{ declaredLength: BigInt(declaredLength ?? 0), payload: 'a' }, { payload: 'b' }],
    closes: 1009,
  })),
]

/** Each is invalid UTF-8, in one fragment and in two. */
const INVALID_TEXTS: readonly (readonly [string, readonly number[]])[] = [
  ['a byte that never occurs', [0x22, 0xff, 0x22]],
  ['an overlong slash', [0xc0, 0xaf]],
  ['a surrogate', [0xed, 0xa0, 0x80]],
  ['a character past the last', [0xf4, 0x90, 0x80, 0x80]],
  ['a continuation byte alone', [0x80, 0x22]],
  ['a character cut short', [0x22, 0xe2, 0x82]],
]

function textCases(dialect: Dialect): readonly FrameCase[] {
  const eof = dialect === 'plain' ? '{"type":"eof"}' : '{"type":"eof","seq":1,"at":0}'
  // Valid JSON of an unknown type: its rejection proves that the text was reassembled.
  const unknown = Buffer.from('{"type":"€"}')
  const cut = unknown.indexOf(0xe2) + 1
  return [
    { title: '5.6 control message', send: [{ opcode: text, payload: eof }], closes: 1000 },
    {
      title: '5.4 control message in three fragments',
      send: [
        { opcode: text, fin: false, payload: eof.slice(0, 4) },
        { opcode: continuation, fin: false, payload: eof.slice(4, 9) },
        { opcode: continuation, payload: eof.slice(9) },
      ],
      closes: 1000,
    },
    {
      title: '8.1 character split over fragments',
      send: [
        { opcode: text, fin: false, payload: unknown.subarray(0, cut) },
        { opcode: continuation, payload: unknown.subarray(cut) },
      ],
      closes: 4402,
    },
    { title: '5.6 empty text', send: [{ opcode: text }], closes: 4402 },
    { title: '5.6 text that is not JSON', send: [{ opcode: text, payload: 'hello' }], closes: 4402 },
    ...INVALID_TEXTS.map(([name, bytes]) => ({
      title: `8.1 text with ${name}`,
      send: [{ opcode: text, payload: new Uint8Array(bytes) }],
      closes: 1007,
    })),
    ...INVALID_TEXTS.map(([name, bytes]) => ({
      title: `8.1 fragmented text with ${name}`,
      send: [
        { opcode: text, fin: false, payload: new Uint8Array(bytes.slice(0, 1)) },
        { opcode: continuation, payload: new Uint8Array(bytes.slice(1)) },
      ],
      closes: 1007,
    })),
  ]
}

function join2(first: FrameSpec, second: FrameSpec): Uint8Array {
  return Buffer.concat([encodeFrame(first), encodeFrame(second)])
}

function splitBytes(bytes: Uint8Array): Uint8Array[] {
  return [...bytes].map((byte) => new Uint8Array([byte]))
}

function hello(): FrameSpec {
  const identity = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex')
  const message = {
    type: 'hello',
    version: 1,
    identity,
    resuming: false,
    received: 0,
    window: 65_536,
    cols: 80,
    rows: 24,
  }
  return { opcode: text, payload: JSON.stringify(message) }
}

describe.each(['plain', 'v1'] as const)('RFC 6455, %s dialect', (dialect) => {
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

  /** Opens a session whose process writes its input to `file`. */
  async function open(file: string): Promise<RawWebSocket> {
    const query = new URLSearchParams([
      ['cmd', 'tee'],
      ['arg', file],
      ...(dialect === 'v1' ? [['keep', '0']] : []),
    ])
    const socket = await openRawWebSocketOrThrow({
      port: sandboxd.port,
      path: `/attach?${query}`,
      headers: sandboxd.headers,
      ...(dialect === 'v1' ? { subprotocols: ['sandwire.v1'] } : {}),
    })
    if (dialect === 'v1') await socket.sendFrame(hello())
    // A process killed before it runs would read nothing.
    await eventually(() => Bun.file(file).exists(), { what: 'the process to run' })
    return socket
  }

  /** Waits briefly for the process to read `text`; gives up silently, because some cases never deliver it. */
  async function hasRead(file: string, text: string): Promise<void> {
    const isRead = async (): Promise<boolean> => (await readFile(file, 'utf8')) === text
    await eventually(isRead, { what: 'the process to read', timeoutMs: 500 }).catch(() => undefined)
  }

  async function countOtherSessions(): Promise<number> {
    const { sessions }: { sessions: unknown[] } = await (await sandboxd.fetch('/sessions')).json()
    return sessions.length - 1
  }

  async function collectPongs(socket: RawWebSocket): Promise<string[]> {
    const pongs: string[] = []
    for await (const frame of socket.frames()) {
      expect(frame).toMatchObject({ isMasked: false, rsv1: false, rsv2: false, rsv3: false, fin: true })
      if (frame.opcode === pong) pongs.push(Buffer.from(frame.payload).toString())
    }
    return pongs
  }

  const cases = [...FRAMING, ...FRAGMENTATION, ...CONTROL, ...CLOSING, ...SIZES, ...textCases(dialect)]

  test.each(cases.map((each) => [each.title, each] as const))(
    '§%s',
    async (_, { send, closes, reads = '', pongs = [] }) => {
      const file = join(sandboxd.workspace, `case-${(count += 1)}`)
      await using socket = await open(file)
      const received = collectPongs(socket)
      for (const [at, each] of send.entries()) {
        // Closing the connection kills the process, perhaps before it has read its input.
        if (closes !== undefined && at > 0 && at === send.length - 1) await hasRead(file, reads)
        // The server may reset the connection before it has read everything.
        await socket.sendBytes(each instanceof Uint8Array ? each : encodeFrame(each)).catch(() => {})
      }
      if (closes === undefined) {
        await socket.sendFrame({ payload: '.' })
        await eventually(async () => (await readFile(file, 'utf8')) === `${reads}.`, {
          what: 'the process to read',
        })
        await socket.sendFrame({ opcode: close, payload: encodeClosePayload(1000) })
      }
      const { how, frame } = await socket.closed
      expect({ how, code: frame?.code ?? null }).toEqual({
        how: 'fin',
        code: closes === undefined ? 1000 : closes,
      })
      expect(await received).toEqual([...pongs])
      await eventually(async () => (await countOtherSessions()) === 0, { what: 'the session to end' })
      expect(await readFile(file, 'utf8')).toBe(closes === undefined ? `${reads}.` : reads)
      await unaffected.check()
    },
  )
})
