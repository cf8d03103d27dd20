import { describe, expect, test } from 'bun:test'
import { encodeFrame, OPCODE } from '@sandwire/testing'
import fc from 'fast-check'
import {
  BodyDecoder,
  bodyLengthOf,
  encodeChunk,
  formatRequestHead,
  HttpProtocolError,
  LAST_CHUNK,
  parseResponseHead,
} from '../src/providers/sprites/http-message.ts'
import {
  encodeMessage,
  FrameDecoder,
  MAX_MESSAGE_BYTES,
  type WebSocketEvent,
  WebSocketProtocolError,
} from '../src/providers/sprites/websocket-frames.ts'

const MASK = new Uint8Array([1, 2, 3, 4])

function split(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const parts: Uint8Array[] = []
  let at = 0
  for (const size of sizes) {
    parts.push(bytes.subarray(at, at + size))
    at += size
  }
  return [...parts, bytes.subarray(at)]
}

function decode(bytes: Uint8Array, sizes: readonly number[] = []): WebSocketEvent[] {
  const decoder = new FrameDecoder()
  return split(bytes, sizes).flatMap((part) => decoder.push(part))
}

function server(opcode: number, payload: Uint8Array | string, fin = true): Uint8Array {
  return encodeFrame({ opcode, payload, fin, mask: false })
}

const sizes = fc.array(fc.nat(40), { maxLength: 20 })

describe('WebSocket frames', () => {
  test('are encoded as RFC 6455 says', () => {
    expect([...encodeMessage('Hi', MASK)]).toEqual([0x81, 0x82, 1, 2, 3, 4, 0x48 ^ 1, 0x69 ^ 2])
    expect([...encodeMessage(new Uint8Array(126), MASK).subarray(0, 4)]).toEqual([0x82, 0xfe, 0, 126])
    expect([...encodeMessage(new Uint8Array(70_000), MASK).subarray(0, 10)]).toEqual([
      0x82, 0xff, 0, 0, 0, 0, 0, 1, 0x11, 0x70,
    ])
  })

  test('are decoded however the bytes are split', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 }), sizes, (payloads, at) => {
        const bytes = Buffer.concat(payloads.map((payload) => server(OPCODE.binary, payload)))
        const events = decode(new Uint8Array(bytes), at)
        expect(events.map((event) => (event.kind === 'binary' ? [...event.bytes] : event.kind))).toEqual(
          payloads.map((payload) => [...payload]),
        )
      }),
    )
  })

  test('join fragments, with control frames between them', () => {
    const bytes = Buffer.concat([
      server(OPCODE.text, 'a', false),
      server(OPCODE.ping, 'p'),
      server(OPCODE.continuation, 'b'),
      server(OPCODE.close, new Uint8Array([0x03, 0xe8, 0x6f])),
    ])
    expect(decode(new Uint8Array(bytes))).toEqual([
      { kind: 'ping', bytes: new TextEncoder().encode('p') },
      { kind: 'text', text: 'ab' },
      { kind: 'close', code: 1000, reason: 'o' },
    ])
  })

  test('are refused when they are masked, reserved, unordered, too long or not UTF-8', () => {
    const long = encodeFrame({ mask: false, declaredLength: BigInt(MAX_MESSAGE_BYTES) + 1n })
    for (const bytes of [
      encodeFrame({ payload: 'x' }),
      encodeFrame({ payload: 'x', mask: false, rsv1: true }),
      server(OPCODE.continuation, 'x'),
      Buffer.concat([server(OPCODE.text, 'a', false), server(OPCODE.text, 'b')]),
      server(3, 'x'),
      server(OPCODE.ping, 'x'.repeat(126)),
      server(OPCODE.text, new Uint8Array([0xff])),
      long,
    ])
      expect(() => decode(new Uint8Array(bytes))).toThrow(WebSocketProtocolError)
  })

  test('never fail otherwise, whatever the peer sends', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), sizes, (bytes, at) => {
        try {
          decode(bytes, at)
        } catch (error) {
          expect(error).toBeInstanceOf(WebSocketProtocolError)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('HTTP messages', () => {
  const readBody = (bytes: Uint8Array, at: readonly number[]): Uint8Array => {
    const decoder = new BodyDecoder({ kind: 'chunked' })
    const parts = split(bytes, at).flatMap((part) => decoder.push(part))
    decoder.end()
    return new Uint8Array(Buffer.concat(parts))
  }

  test('carry chunked bodies however the bytes are split', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 })), sizes, (parts, at) => {
        const bytes = Buffer.concat([...parts.map((part) => encodeChunk(part)), LAST_CHUNK])
        expect(readBody(new Uint8Array(bytes), at)).toEqual(new Uint8Array(Buffer.concat(parts)))
      }),
    )
  })

  test('with an incomplete body are never taken for whole', () => {
    const bytes = new Uint8Array(Buffer.concat([encodeChunk(new Uint8Array(50)), LAST_CHUNK]))
    for (let length = 0; length < bytes.length; length++)
      expect(() => readBody(bytes.subarray(0, length), [])).toThrow(HttpProtocolError)
    const short = new BodyDecoder({ kind: 'length', bytes: 3 })
    short.push(new Uint8Array(2))
    expect(() => short.end()).toThrow(HttpProtocolError)
  })

  test('with two lengths or another encoding are refused', () => {
    const lengthOf = (headers: string) =>
      bodyLengthOf(parseResponseHead(`HTTP/1.1 200 OK\r\n${headers}`), 'GET')
    expect(lengthOf('content-length: 3')).toEqual({ kind: 'length', bytes: 3 })
    for (const headers of [
      'content-length: 3\r\ncontent-length: 4',
      'content-length: -1',
      'content-length: 3\r\ntransfer-encoding: chunked',
      'transfer-encoding: gzip, chunked',
      'no colon',
      ' folded: 1',
    ])
      expect(() => lengthOf(headers)).toThrow(HttpProtocolError)
  })

  test('cannot hold a second request', () => {
    for (const [method, target, header] of [
      ['CONNECT', '/', 'a'],
      ['GET', '//\r\n', 'a'],
      ['GET', 'http://other/', 'a'],
      ['GET', '/', 'a\nb: c'],
    ] as const)
      expect(() => formatRequestHead(method, target, [['x', header]])).toThrow(HttpProtocolError)
    expect(() => formatRequestHead('GET', '/', [['x y', '']])).toThrow(HttpProtocolError)
  })

  test('never fail otherwise, whatever the peer sends', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 200 }),
        fc.uint8Array({ maxLength: 200 }),
        (text, body) => {
          try {
            const head = parseResponseHead(`HTTP/1.1 200 OK\r\n${text}`)
            new BodyDecoder(bodyLengthOf(head, 'GET')).push(body)
            readBody(body, [])
          } catch (error) {
            // `Headers` refuses characters beyond Latin-1.
            if (!(error instanceof TypeError)) expect(error).toBeInstanceOf(HttpProtocolError)
          }
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
