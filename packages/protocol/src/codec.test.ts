import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ClientMessage, PlainClientMessage } from './client-frames.ts'
import { decodeClient, decodePlainClient, decodePlainServer, decodeServer, encode } from './codec.ts'
import { FramePacker, packData, unpackData } from './data-frame.ts'
import { MAX_CONTROL_CHARS, MAX_DATA_BYTES } from './limits.ts'
import type { PlainServerMessage, ServerMessage } from './server-frames.ts'

const IDENTITY = '00112233445566778899aabbccddeeff'

/** Every message and its exact encoding. */
const CLIENT: readonly (readonly [ClientMessage, string])[] = [
  [
    {
      type: 'hello',
      version: 1,
      identity: IDENTITY,
      resuming: false,
      received: 0,
      window: 65536,
      cols: 80,
      rows: 24,
    },
    `{"type":"hello","version":1,"identity":"${IDENTITY}","resuming":false,"received":0,"window":65536,"cols":80,"rows":24}`,
  ],
  [
    {
      type: 'hello',
      version: 1,
      identity: IDENTITY,
      attempt: 2,
      resuming: true,
      received: 5,
      window: 1,
      cols: 80,
      rows: 24,
      role: 'viewer',
      name: 'Ann Ü',
      env: { TERM: 'xterm-256color' },
    },
    `{"type":"hello","version":1,"identity":"${IDENTITY}","attempt":2,"resuming":true,"received":5,"window":1,"cols":80,"rows":24,"role":"viewer","name":"Ann Ü","env":{"TERM":"xterm-256color"}}`,
  ],
  [{ type: 'ack', output: 4096 }, '{"type":"ack","output":4096}'],
  [
    { type: 'resize', seq: 1, at: 0, cols: 100, rows: 30 },
    '{"type":"resize","seq":1,"at":0,"cols":100,"rows":30}',
  ],
  [{ type: 'signal', seq: 2, at: 7, signal: 'SIGINT' }, '{"type":"signal","seq":2,"at":7,"signal":"SIGINT"}'],
  [{ type: 'eof', seq: 3, at: 7 }, '{"type":"eof","seq":3,"at":7}'],
  [{ type: 'ping', id: 9 }, '{"type":"ping","id":9}'],
  [{ type: 'take' }, '{"type":"take"}'],
  [{ type: 'ask' }, '{"type":"ask"}'],
  [{ type: 'give', to: 'a3' }, '{"type":"give","to":"a3"}'],
  [{ type: 'roleSeen', epoch: 4 }, '{"type":"roleSeen","epoch":4}'],
  [{ type: 'detach' }, '{"type":"detach"}'],
]

const SERVER: readonly (readonly [ServerMessage, string])[] = [
  [
    {
      type: 'welcome',
      version: 1,
      session: 'dev.k3f',
      attachment: 'a1',
      role: 'driver',
      authority: 'driver',
      epoch: 1,
      mode: 'pty',
      output: 10,
      input: { at: 3, seq: 1 },
      inputWindow: 262144,
      keepSeconds: 60,
      cols: 80,
      rows: 24,
    },
    '{"type":"welcome","version":1,"session":"dev.k3f","attachment":"a1","role":"driver","authority":"driver","epoch":1,"mode":"pty","output":10,"input":{"at":3,"seq":1},"inputWindow":262144,"keepSeconds":60,"cols":80,"rows":24}',
  ],
  [{ type: 'ack', input: 3, seq: 1 }, '{"type":"ack","input":3,"seq":1}'],
  [{ type: 'gap', from: 1, to: 9 }, '{"type":"gap","from":1,"to":9}'],
  [
    { type: 'snapshot', at: 9, cols: 80, rows: 24, bytes: 100, exact: true },
    '{"type":"snapshot","at":9,"cols":80,"rows":24,"bytes":100,"exact":true}',
  ],
  [
    {
      type: 'snapshot',
      at: 9,
      cols: 80,
      rows: 24,
      bytes: 100,
      exact: true,
      parts: [
        { kind: 'rows', bytes: 90 },
        { kind: 'cursor', bytes: 6, row: 3, column: 0 },
      ],
    },
    '{"type":"snapshot","at":9,"cols":80,"rows":24,"bytes":100,"exact":true,"parts":[{"kind":"rows","bytes":90},{"kind":"cursor","bytes":6,"row":3,"column":0}]}',
  ],
  [{ type: 'resized', at: 9, cols: 80, rows: 24 }, '{"type":"resized","at":9,"cols":80,"rows":24}'],
  [{ type: 'stdinClosed', at: 4 }, '{"type":"stdinClosed","at":4}'],
  [
    { type: 'exit', code: 0, signal: null, outputEnd: 12, truncated: false },
    '{"type":"exit","code":0,"signal":null,"outputEnd":12,"truncated":false}',
  ],
  [
    { type: 'error', code: 'desync', message: 'Cannot', fatal: true },
    '{"type":"error","code":"desync","message":"Cannot","fatal":true}',
  ],
  [
    { type: 'error', code: 'shutting_down', message: 'Stopping', fatal: false, reason: 'idle' },
    '{"type":"error","code":"shutting_down","message":"Stopping","fatal":false,"reason":"idle"}',
  ],
  [
    { type: 'role', role: 'viewer', epoch: 2, input: { at: 3, seq: 0 } },
    '{"type":"role","role":"viewer","epoch":2,"input":{"at":3,"seq":0}}',
  ],
  [
    {
      type: 'presence',
      driver: null,
      attachments: [{ id: 'a1', role: 'viewer', name: '', connected: true, agent: true }],
      private: 'a2',
    },
    '{"type":"presence","driver":null,"attachments":[{"id":"a1","role":"viewer","name":"","connected":true,"agent":true}],"private":"a2"}',
  ],
  [{ type: 'asked', by: 'a2' }, '{"type":"asked","by":"a2"}'],
  [{ type: 'pong', id: 9 }, '{"type":"pong","id":9}'],
]

const PLAIN_CLIENT: readonly (readonly [PlainClientMessage, string])[] = [
  [{ type: 'resize', cols: 80, rows: 24 }, '{"type":"resize","cols":80,"rows":24}'],
  [{ type: 'signal', signal: 'SIGTERM' }, '{"type":"signal","signal":"SIGTERM"}'],
  [{ type: 'eof' }, '{"type":"eof"}'],
]

const PLAIN_SERVER: readonly (readonly [PlainServerMessage, string])[] = [
  [{ type: 'exit', code: 0 }, '{"type":"exit","code":0}'],
  [{ type: 'exit', code: 137, signal: 'SIGKILL' }, '{"type":"exit","code":137,"signal":"SIGKILL"}'],
  [{ type: 'error', code: 'bad_frame', message: 'x' }, '{"type":"error","code":"bad_frame","message":"x"}'],
]

describe('messages on the wire', () => {
  test.each(CLIENT)('[E4] client %j', (message, wire) => {
    expect(encode(message)).toBe(wire)
    expect(decodeClient(wire)).toEqual({ kind: 'control', message })
  })

  test.each(SERVER)('[E4] server %j', (message, wire) => {
    expect(encode(message)).toBe(wire)
    expect(decodeServer(wire)).toEqual({ kind: 'control', message })
  })

  test.each(PLAIN_CLIENT)('[P2] plain client %j', (message, wire) => {
    expect(encode(message)).toBe(wire)
    expect(decodePlainClient(wire)).toEqual({ kind: 'control', message })
  })

  test.each(PLAIN_SERVER)('[P3] plain server %j', (message, wire) => {
    expect(encode(message)).toBe(wire)
    expect(decodePlainServer(wire)).toEqual({ kind: 'control', message })
  })

  test('[E4] cover every message type', () => {
    const types = (rows: readonly (readonly [{ type: string }, string])[]): number =>
      new Set(rows.map(([{ type }]) => type)).size
    expect([types(CLIENT), types(SERVER), types(PLAIN_CLIENT), types(PLAIN_SERVER)]).toEqual([11, 12, 3, 2])
  })
})

describe('data frames', () => {
  const payload = Uint8Array.of(0, 255, 1)

  test.each([
    ['stdout', 1],
    ['stderr', 2],
    ['snapshot', 3],
  ] as const)('[P1] of %s begin with %d', (stream, first) => {
    expect(packData(stream, payload)).toEqual(Uint8Array.of(first, 0, 255, 1))
    expect(new FramePacker().pack(stream, payload)).toEqual(packData(stream, payload))
    expect(decodeServer(Uint8Array.of(first, 0, 255, 1))).toEqual({ kind: 'data', stream, payload })
  })

  test('[B1] pack consecutive frames of every size, up to the largest', () => {
    const packer = new FramePacker()
    for (const bytes of [MAX_DATA_BYTES, 0, 1, 1000, MAX_DATA_BYTES]) {
      const payload = new Uint8Array(bytes).fill(bytes % 251)
      expect(packer.pack('stderr', payload)).toEqual(packData('stderr', payload))
    }
  })

  test('[P1] may be empty', () => {
    expect(unpackData(Uint8Array.of(1))).toEqual({ stream: 'stdout', payload: new Uint8Array(0) })
    expect(decodeClient(new Uint8Array(0))).toEqual({ kind: 'input', bytes: new Uint8Array(0) })
  })

  test.each([[[]], [[0]], [[4, 65]], [[255]]])('[E6] without a valid stream id are refused: %j', (bytes) => {
    expect(decodeServer(Uint8Array.from(bytes))).toBeUndefined()
    expect(decodePlainServer(Uint8Array.from(bytes))).toBeUndefined()
  })

  test('[P1] from a client are raw input', () => {
    expect(decodeClient(payload)).toEqual({ kind: 'input', bytes: payload })
    expect(decodePlainClient(payload)).toEqual({ kind: 'input', bytes: payload })
  })
})

const HELLO = JSON.parse(CLIENT[1]?.[1] ?? '{}') as Record<string, unknown>
const hello = (change: Record<string, unknown>): string => JSON.stringify({ ...HELLO, ...change })

describe('a decoder refuses', () => {
  test.each([
    ['nothing', ''],
    ['no JSON', 'hello'],
    ['a number', '1'],
    ['null', 'null'],
    ['a list', '[]'],
    ['a text', '"take"'],
    ['no type', '{}'],
    ['a type that is no text', '{"type":1}'],
    ['an unknown type', '{"type":"talk"}'],
    ['a type of the other side', '{"type":"welcome"}'],
    ['an inherited type', '{"type":"constructor"}'],
    ['an inherited type, too', '{"type":"__proto__"}'],
    ['a type as a prototype', '{"__proto__":{"type":"take"}}'],
    ['an unknown field', '{"type":"take","now":true}'],
    ['an inherited field', '{"type":"take","toString":1}'],
    ['a prototype field', '{"type":"ack","__proto__":{"output":1}}'],
    ['a field with a prototype beside it', '{"type":"ack","output":1,"__proto__":{}}'],
    ['a missing field', '{"type":"ack"}'],
    ['a number as text', '{"type":"ack","output":"1"}'],
    ['a boolean as a number', '{"type":"ack","output":true}'],
    ['a negative offset', '{"type":"ack","output":-1}'],
    ['minus nothing and a bit', '{"type":"ack","output":-0.5}'],
    ['a fraction', '{"type":"ack","output":0.5}'],
    ['an offset past 2^53', '{"type":"ack","output":9007199254740993}'],
    ['an endless number', '{"type":"ack","output":1e999}'],
    ['a number zero', '{"type":"eof","seq":0,"at":0}'],
    ['an empty terminal', '{"type":"resize","seq":1,"at":0,"cols":0,"rows":24}'],
    ['a huge terminal', '{"type":"resize","seq":1,"at":0,"cols":80,"rows":4097}'],
    ['a signal in small letters', '{"type":"signal","seq":1,"at":0,"signal":"sigint"}'],
    ['a signal by number', '{"type":"signal","seq":1,"at":0,"signal":2}'],
    ['a signal followed by more text', '{"type":"signal","seq":1,"at":0,"signal":"SIGINT\\n"}'],
    ['a name that is no attachment', '{"type":"give","to":"b1"}'],
    ['an identity in capitals', hello({ identity: IDENTITY.toUpperCase() })],
    ['a short identity', hello({ identity: IDENTITY.slice(1) })],
    ['an identity with a line feed', hello({ identity: `${IDENTITY.slice(1)}\n` })],
    ['a version of 0', hello({ version: 0 })],
    ['a window of 0', hello({ window: 0 })],
    ['a window over the maximum', hello({ window: 1024 * 1024 + 1 })],
    ['a role that is none', hello({ role: 'owner' })],
    ['a null role', hello({ role: null })],
    ['a long name', hello({ name: 'x'.repeat(65) })],
    ['a name with an escape', hello({ name: 'x\u001b[31m' })],
    ['a name that turns the text around', hello({ name: 'x\u202e' })],
    ['a name over two lines', hello({ name: 'x\u2028y' })],
    ['half a character in a name', hello({ name: '\ud83d' })],
    ['half a character in the environment', hello({ env: { TERM: '\udc00x' } })],
    ['an environment that is a list', hello({ env: [] })],
    ['a variable with NUL', hello({ env: { A: 'x\0y' } })],
    ['a variable that is a number', hello({ env: { A: 1 } })],
    ['a variable without a name', hello({ env: { '': 'x' } })],
    ['a variable with an equals sign', hello({ env: { 'A=B': 'x' } })],
    [
      'too many variables',
      hello({ env: Object.fromEntries(Array.from({ length: 257 }, (_, n) => [`V${n}`, ''])) }),
    ],
    ['a long variable', hello({ env: { A: 'x'.repeat(32 * 1024 + 1) } })],
    [
      'a thing that is nested without end',
      `{"type":"ack","output":${'['.repeat(60_000)}${']'.repeat(60_000)}}`,
    ],
    ['a thing that is too long', `{"type":"take"${' '.repeat(MAX_CONTROL_CHARS)}}`],
    ['two things', '{"type":"take"}{"type":"take"}'],
    ['a byte order mark', '\ufeff{"type":"take"}'],
    ['a comment', '{"type":"take"/**/}'],
  ])('[E4] %s', (_, wire) => {
    expect(decodeClient(wire)).toBeUndefined()
  })

  test('[B5] a lone surrogate wherever text is allowed', () => {
    const welcome = JSON.parse(SERVER[0]?.[1] ?? '{}') as Record<string, unknown>
    expect(decodeServer(JSON.stringify({ ...welcome, session: '\ud800' }))).toBeUndefined()
    expect(
      decodeServer(JSON.stringify({ type: 'error', code: 'x', message: '\udfff', fatal: true })),
    ).toBeUndefined()
  })

  test('[B5] no valid variable name, not even __proto__', () => {
    const wire = hello({}).replace(
      '"env":{"TERM":"xterm-256color"}',
      '"env":{"__proto__":"x","toString":"y"}',
    )
    const frame = decodeClient(wire)
    const env = frame?.kind === 'control' && frame.message.type === 'hello' ? frame.message.env : undefined
    expect(Object.entries(env ?? {})).toEqual([
      ['__proto__', 'x'],
      ['toString', 'y'],
    ])
    expect(({} as Record<string, unknown>)['x']).toBeUndefined()
  })

  test.each([
    '{"type":"exit","code":256,"signal":null,"outputEnd":0,"truncated":false}',
    '{"type":"exit","code":-1,"signal":null,"outputEnd":0,"truncated":false}',
    '{"type":"snapshot","at":0,"cols":80,"rows":24,"bytes":524289,"exact":true}',
    '{"type":"presence","driver":"me","attachments":[]}',
    '{"type":"presence","driver":null,"attachments":{}}',
    '{"type":"presence","driver":null,"attachments":[{}]}',
    '{"type":"error","code":"Bad Code","message":"","fatal":true}',
    '{"type":"hello"}',
  ])('[E6] from a server %s', (wire) => {
    expect(decodeServer(wire)).toBeUndefined()
  })

  test('[E6] a presence with more attachments than the limit', () => {
    const one = { id: 'a1', role: 'viewer', name: '', connected: true }
    const presence = (count: number): string =>
      JSON.stringify({
        type: 'presence',
        driver: null,
        attachments: Array.from({ length: count }, () => one),
        private: null,
      })
    expect(decodeServer(presence(64))).toBeDefined()
    expect(decodeServer(presence(65))).toBeUndefined()
  })
})

const DECODERS = { decodeClient, decodePlainClient, decodeServer, decodePlainServer }

/** JSON like a message: valid ones with a field changed, removed or added. */
const nearMessage = fc
  .record({
    base: fc.constantFrom(
      ...[...CLIENT, ...SERVER, ...PLAIN_CLIENT, ...PLAIN_SERVER].map(([message]) => message),
    ),
    key: fc.constantFrom(
      'type',
      'at',
      'seq',
      'output',
      'cols',
      'env',
      'input',
      'attachments',
      '__proto__',
      'constructor',
      'x',
    ),
    value: fc.oneof(fc.jsonValue(), fc.double(), fc.string({ unit: 'binary' }), fc.constant(undefined)),
  })
  .map(({ base, key, value }) => JSON.stringify({ ...base, [key]: value }))

describe('decoders with mutated input', () => {
  test.each(Object.entries(DECODERS))(
    '[B5] %s never throws, and takes only what it would write itself',
    (_, decode) => {
      const wire = fc.oneof(fc.string({ unit: 'binary' }), fc.json(), nearMessage, fc.uint8Array())
      fc.assert(
        fc.property(wire, (data) => {
          const frame = decode(data)
          if (frame?.kind !== 'control') return
          expect(decode(encode(frame.message))).toEqual(frame)
        }),
        { numRuns: 4_000 },
      )
    },
  )

  test('[B5] decode truncated or changed messages completely or not at all', () => {
    const wires = [...CLIENT, ...SERVER].map(([, wire]) => wire)
    fc.assert(
      fc.property(fc.constantFrom(...wires), fc.nat(), fc.string({ maxLength: 1 }), (wire, at, put) => {
        const changed = wire.slice(0, at % wire.length) + put + wire.slice((at % wire.length) + 1)
        for (const decode of Object.values(DECODERS)) decode(changed)
        for (const decode of Object.values(DECODERS)) decode(wire.slice(0, at % wire.length))
      }),
      { numRuns: 4_000 },
    )
  })
})
