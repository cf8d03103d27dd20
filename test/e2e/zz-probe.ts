import { encodeClosePayload, encodeFrame, OPCODE, openRawWebSocketOrThrow, type FrameSpec } from '@sandwire/testing'
import { startSandboxd } from './support/sandboxd.ts'
const sandboxd = await startSandboxd()
const enc = (s: string) => Buffer.from(s)
const F = encodeFrame
const rep = (n: number, spec: FrameSpec) => Buffer.concat(Array.from({ length: n }, () => F(spec)))
const cases: [string, Uint8Array[]][] = [
  ['binary', [F({ payload: 'a' })]],
  ['empty binary', [F({ payload: '' })]],
  ['unmasked', [F({ mask: false, payload: 'a' })]],
  ['unmasked ping', [F({ mask: false, opcode: 9, payload: 'a' })]],
  ['zero mask', [F({ mask: new Uint8Array(4), payload: 'a' })]],
  ['rsv1', [F({ rsv1: true, payload: 'a' })]],
  ['rsv2', [F({ rsv2: true, payload: 'a' })]],
  ['rsv3', [F({ rsv3: true, payload: 'a' })]],
  ['rsv1 ping', [F({ opcode: 9, rsv1: true, payload: 'a' })]],
  ['rsv1 cont', [F({ fin: false, payload: 'a' }), F({ opcode: 0, rsv1: true, payload: 'b' })]],
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((o): [string, Uint8Array[]] => ['opcode ' + o, [F({ opcode: o, payload: 'a' })]]),
  ['long form of short', [F({ declaredLength: 1n, payload: 'a' })]],
  ['frag 2', [F({ fin: false, payload: 'a' }), F({ opcode: 0, payload: 'b' })]],
  ['frag w ping', [F({ fin: false, payload: 'a' }), F({ opcode: 9, payload: 'p' }), F({ opcode: 0, payload: 'b' })]],
  ['lone cont', [F({ opcode: 0, payload: 'a' })]],
  ['lone cont not fin', [F({ opcode: 0, fin: false, payload: 'a' })]],
  ['new msg in frag', [F({ fin: false, payload: 'a' }), F({ payload: 'b' })]],
  ['text in frag', [F({ fin: false, payload: 'a' }), F({ opcode: 1, payload: '{"type":"eof"}' })]],
  ['cont after end', [F({ fin: false, payload: 'a' }), F({ opcode: 0, payload: 'b' }), F({ opcode: 0, payload: 'c' })]],
  ['never finished', [F({ fin: false, payload: 'a' })]],
  ['0 byte frags 1e5', [F({ fin: false, payload: '' }), rep(100000, { opcode: 0, fin: false, payload: '' }), F({ opcode: 0, payload: 'z' })]],
  ['1 byte frags 1e5', [F({ fin: false, payload: 'x' }), rep(100000, { opcode: 0, fin: false, payload: 'y' }), F({ opcode: 0, payload: 'z' })]],
  ['frags over max', [F({ fin: false, payload: Buffer.alloc(600000) }), F({ opcode: 0, payload: Buffer.alloc(600000) })]],
  ['frags over max unfinished', [F({ fin: false, payload: Buffer.alloc(600000) }), F({ opcode: 0, fin: false, payload: Buffer.alloc(600000) })]],
  ['ping 125', [F({ opcode: 9, payload: Buffer.alloc(125, 65) })]],
  ['ping 126', [F({ opcode: 9, payload: Buffer.alloc(126, 65) })]],
  ['ping frag', [F({ opcode: 9, fin: false, payload: 'a' })]],
  ['pong unsolicited', [F({ opcode: 10, payload: 'a' })]],
  ['pong 126', [F({ opcode: 10, payload: Buffer.alloc(126) })]],
  ['close 126', [F({ opcode: 8, payload: Buffer.concat([encodeClosePayload(1000), Buffer.alloc(124, 65)]) })]],
  ['close frag', [F({ opcode: 8, fin: false, payload: encodeClosePayload(1000) })]],
  ['ping long form', [F({ opcode: 9, declaredLength: 1n, payload: 'a' })]],
  ['close empty', [F({ opcode: 8 })]],
  ['close 1 byte', [F({ opcode: 8, payload: new Uint8Array([3]) })]],
  ...[0, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015, 1016, 1100, 2000, 2999, 3000, 3999, 4000, 4999, 5000, 65535].map((c): [string, Uint8Array[]] => ['close ' + c, [F({ opcode: 8, payload: encodeClosePayload(c, 'why') })]]),
  ['close bad utf8', [F({ opcode: 8, payload: Buffer.from([3, 232, 0xff, 0xfe]) })]],
  ['close cut utf8', [F({ opcode: 8, payload: Buffer.from([3, 232, 0xe2, 0x82]) })]],
  ['text good', [F({ opcode: 1, payload: '{"type":"resize","cols":80,"rows":24}' }), F({ payload: 'ok' })]],
  ['text bad json', [F({ opcode: 1, payload: 'hello' })]],
  ['text bad utf8', [F({ opcode: 1, payload: Buffer.from([0xff]) })]],
  ['text overlong', [F({ opcode: 1, payload: Buffer.from([0xc0, 0xaf]) })]],
  ['text surrogate', [F({ opcode: 1, payload: Buffer.from([0xed, 0xa0, 0x80]) })]],
  ['text > 10ffff', [F({ opcode: 1, payload: Buffer.from([0xf4, 0x90, 0x80, 0x80]) })]],
  ['text split utf8 good', [F({ opcode: 1, fin: false, payload: Buffer.from('{"type":"signal","signal":"\u00e9"}').subarray(0, 28) }), F({ opcode: 0, payload: Buffer.from('{"type":"signal","signal":"\u00e9"}').subarray(28) })]],
  ['text split bad', [F({ opcode: 1, fin: false, payload: Buffer.from([0x22, 0xe2]) }), F({ opcode: 0, payload: Buffer.from([0x22]) })]],
  ['text frag eof', [F({ opcode: 1, fin: false, payload: '{"type":' }), F({ opcode: 0, payload: '"eof"}' })]],
  ['text empty', [F({ opcode: 1, payload: '' })]],
  ['exact max', [F({ payload: Buffer.alloc(1048576, 65) })]],
  ['max+1 real', [F({ payload: Buffer.alloc(1048577, 65) })]],
  ['declared 2MB', [F({ declaredLength: 2097152n, payload: 'a' })]],
  ['declared 2^31', [F({ declaredLength: 1n << 31n, payload: 'a' })]],
  ['declared 2^32', [F({ declaredLength: 1n << 32n, payload: 'a' })]],
  ['declared 2^63-1', [F({ declaredLength: (1n << 63n) - 1n, payload: 'a' })]],
  ['declared 2^63', [F({ declaredLength: 1n << 63n, payload: 'a' })]],
  ['declared 2^64-1', [F({ declaredLength: (1n << 64n) - 1n, payload: 'a' })]],
  ['declared 2^32+1 truncation', [F({ declaredLength: (1n << 32n) + 1n, payload: 'a' }), F({ payload: 'b' })]],
  ['data after close', [Buffer.concat([F({ opcode: 8, payload: encodeClosePayload(1000) }), F({ payload: 'late' })])]],
  ['two closes', [Buffer.concat([F({ opcode: 8, payload: encodeClosePayload(1000) }), F({ opcode: 8, payload: encodeClosePayload(1001) })])]],
  ['garbage', [enc('GET / HTTP/1.1\r\n\r\n')]],
  ['pings 2e4', [rep(20000, { opcode: 9, payload: 'p' })]],
  ['pongs 1e5', [rep(100000, { opcode: 10, payload: 'p' })]],
  ['empties 1e5', [rep(100000, { payload: '' })]],
]
let n = 0
const only = process.argv[2]
for (const [name, sends] of cases) {
  if (only && !name.includes(only)) continue
  const file = `${sandboxd.workspace}/case-${n++}`
  const ws = await openRawWebSocketOrThrow({ port: sandboxd.port, path: `/attach?cmd=tee&arg=${encodeURIComponent(file)}`, headers: sandboxd.headers })
  const t = performance.now()
  let err = ''
  for (const s of sends) await ws.sendBytes(s).catch((e: Error) => (err = e.message))
  const frames: string[] = []
  let total = 0
  const reading = (async () => { for await (const f of ws.frames()) { total++; if (frames.length < 4) frames.push(`${f.opcode}:${f.opcode === 8 ? (f.payload[0]! << 8 | f.payload[1]!) + ':' + Buffer.from(f.payload.subarray(2)) : f.payload.length > 60 ? f.payload.length + 'B' : Buffer.from(f.payload).toString('latin1')}`) } })()
  const end = await Promise.race([ws.closed, Bun.sleep(400)])
  const ms = Math.round(performance.now() - t)
  ws.reset()
  await reading
  await Bun.sleep(10)
  const got = await Bun.file(file).exists() ? (await Bun.file(file).text()) : '<none>'
  console.log(name.padEnd(26), end ? `${end.how} ${JSON.stringify(end.frame) ?? 'no close frame'}` : 'OPEN', `${ms}ms`, total, JSON.stringify(frames), 'process:', got.length > 40 ? got.length : JSON.stringify(got), err)
}
console.log(await (await sandboxd.fetch('/sessions')).json())
await sandboxd.stop()
