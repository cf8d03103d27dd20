import { describe, expect, test } from 'bun:test'
import { patternAt } from './pattern.ts'
import { Random } from './random.ts'
import {
  decodeClosePayload,
  encodeClosePayload,
  encodeFrame,
  FrameParser,
  OPCODE,
} from './websocket-frame.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

describe('encodeFrame', () => {
  test('encodes the examples of RFC 6455 section 5.7', () => {
    const hello = { opcode: OPCODE.text, payload: 'Hello' }
    expect(hex(encodeFrame({ ...hello, mask: false }))).toBe('810548656c6c6f')
    expect(hex(encodeFrame(hello))).toBe('818537fa213d7f9f4d5158')
    expect(hex(encodeFrame({ opcode: OPCODE.text, fin: false, mask: false, payload: 'Hel' }))).toBe(
      '010348656c',
    )
    expect(hex(encodeFrame({ opcode: OPCODE.continuation, mask: false, payload: 'lo' }))).toBe('80026c6f')
    expect(hex(encodeFrame({ mask: false, payload: new Uint8Array(256) }).subarray(0, 4))).toBe('827e0100')
    expect(hex(encodeFrame({ mask: false, payload: new Uint8Array(65_536) }).subarray(0, 10))).toBe(
      '827f0000000000010000',
    )
  })

  test('encodes frames that the protocol forbids', () => {
    expect(
      hex(encodeFrame({ opcode: 0xf, rsv1: true, rsv2: true, rsv3: true, mask: new Uint8Array(4) })),
    ).toBe('ff8000000000')
    expect(hex(encodeFrame({ mask: false, declaredLength: 1n << 63n, payload: 'x' }))).toBe(
      '827f800000000000000078',
    )
  })
})

describe('FrameParser', () => {
  test('parses the same frames wherever the stream is split', () => {
    const specs = [0, 1, 125, 126, 127, 65_535, 65_536, 100_000].map((length, index) => ({
      payload: patternAt(1, 0, length),
      mask: index % 2 === 0,
      rsv1: index % 3 === 0,
      fin: index % 4 !== 0,
    }))
    const stream = Buffer.concat(specs.map(encodeFrame))
    for (let seed = 0; seed < 20; seed++) {
      const random = new Random(seed)
      const parser = new FrameParser()
      const frames = []
      for (let at = 0; at < stream.length;) {
        const end = at + (random.chance(0.5) ? random.int(1, 12) : random.int(1, 50_000))
        frames.push(...parser.push(stream.subarray(at, end)))
        at = end
      }
      const expected = specs.map(({ mask, ...spec }) => ({
        ...spec,
        isMasked: mask,
        opcode: 2,
        rsv2: false,
        rsv3: false,
      }))
      expect(frames).toEqual(expected)
    }
  })
})

test('a close payload has a code and reason, or is empty', () => {
  expect(decodeClosePayload(encodeClosePayload(1002, 'bad frame'))).toEqual({
    code: 1002,
    reason: 'bad frame',
  })
  expect(decodeClosePayload(encodeClosePayload())).toEqual({ reason: '' })
})
