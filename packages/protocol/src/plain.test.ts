import { describe, expect, test } from 'bun:test'
import { encode } from './codec.ts'
import { packData } from './data-frame.ts'
import { isControlMessage, pack, parseMessage, STREAM_STDERR, STREAM_STDOUT, unpack } from './plain.ts'

describe('the plain helpers', () => {
  test('pack writes the frames that the server sends', () => {
    const bytes = Uint8Array.of(0, 1, 255)
    expect(pack(STREAM_STDOUT, bytes)).toEqual(packData('stdout', bytes))
    expect(pack(STREAM_STDERR, bytes)).toEqual(packData('stderr', bytes))
    expect([STREAM_STDOUT, STREAM_STDERR]).toEqual([0x01, 0x02])
  })

  test('unpack reverses pack without copying', () => {
    const frame = pack(STREAM_STDERR, Uint8Array.of(7))
    expect(unpack(frame)).toEqual({ streamId: STREAM_STDERR, payload: Uint8Array.of(7) })
    expect(unpack(frame).payload.buffer).toBe(frame.buffer)
    expect(() => unpack(new Uint8Array(0))).toThrow('empty')
  })

  test.each([
    [{ type: 'resize', cols: 80, rows: 24 }, true],
    [{ type: 'signal', signal: 'SIGINT' }, true],
    [{ type: 'eof' }, true],
    [{ type: 'exit', code: 0 }, true],
    [{ type: 'exit', code: 143, signal: 'SIGTERM' }, true],
    [{ type: 'error', code: 'internal', message: 'x' }, true],
    [{ type: 'exit' }, false],
    [{ type: 'exit', code: 0, extra: 1 }, false],
    [{ type: 'other' }, false],
    [{}, false],
    [null, false],
    ['exit', false],
  ])('isControlMessage(%j) is %p', (value, expected) => {
    expect(isControlMessage(value)).toBe(expected)
  })

  test('parseMessage distinguishes output from control messages', () => {
    expect(parseMessage(pack(STREAM_STDOUT, Uint8Array.of(65)).buffer)).toEqual({
      kind: 'binary',
      streamId: STREAM_STDOUT,
      payload: Uint8Array.of(65),
    })
    expect(parseMessage(encode({ type: 'exit', code: 3 }))).toEqual({
      kind: 'control',
      message: { type: 'exit', code: 3 },
    })
    expect(() => parseMessage('{"type":"other"}')).toThrow('Unknown control message')
    expect(() => parseMessage('not JSON')).toThrow(SyntaxError)
  })
})
