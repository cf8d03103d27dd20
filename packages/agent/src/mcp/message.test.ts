import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { decodeMcp, INVALID_REQUEST, PARSE_ERROR } from './message.ts'

const decode = (value: unknown): ReturnType<typeof decodeMcp> => decodeMcp(JSON.stringify(value))

describe('decodeMcp', () => {
  test('tells requests, notifications and responses apart', () => {
    const params = { a: 1 }
    expect(decode({ jsonrpc: '2.0', id: 7, method: 'x', params })).toEqual({
      kind: 'request',
      id: 7,
      method: 'x',
      params,
    })
    expect(decode({ jsonrpc: '2.0', id: '', method: 'x' })).toMatchObject({
      kind: 'request',
      id: '',
      params: {},
    })
    expect(decode({ jsonrpc: '2.0', method: 'x' })).toEqual({ kind: 'notification', method: 'x', params: {} })
    expect(decode({ jsonrpc: '2.0', id: 1, result: null })).toEqual({ kind: 'response' })
    expect(decode({ jsonrpc: '2.0', id: 1, error: {} })).toEqual({ kind: 'response' })
  })

  test.each([
    ['a batch', [{ jsonrpc: '2.0', id: 1, method: 'x' }]],
    ['another version', { jsonrpc: '1.0', id: 1, method: 'x' }],
    ['no version', { id: 1, method: 'x' }],
    ['a null id', { jsonrpc: '2.0', id: null, method: 'x' }],
    ['a fraction as id', { jsonrpc: '2.0', id: 1.5, method: 'x' }],
    ['a long id', { jsonrpc: '2.0', id: 'x'.repeat(257), method: 'x' }],
    ['no method', { jsonrpc: '2.0', id: 1 }],
    ['a method that is no text', { jsonrpc: '2.0', id: 1, method: 1 }],
    ['a long method', { jsonrpc: '2.0', id: 1, method: 'x'.repeat(129) }],
    ['params that are a list', { jsonrpc: '2.0', id: 1, method: 'x', params: [] }],
    ['text', 'x'],
    ['null', null],
  ])('refuses %s', (_, value) => {
    expect(decode(value)).toMatchObject({ kind: 'invalid', code: INVALID_REQUEST })
  })

  test('refuses what is not JSON', () => {
    for (const line of ['', '{', '{"jsonrpc":"2.0"', '['.repeat(200_000)])
      expect(decodeMcp(line)).toMatchObject({ kind: 'invalid', id: null })
    expect(decodeMcp('{')).toMatchObject({ code: PARSE_ERROR })
  })

  test('never throws, and repeats only ids and methods within their bounds', () => {
    const near = fc.record(
      {
        jsonrpc: fc.oneof(fc.constant('2.0'), fc.jsonValue()),
        id: fc.oneof(fc.integer(), fc.string(), fc.jsonValue()),
        method: fc.oneof(fc.constantFrom('initialize', 'tools/call'), fc.jsonValue()),
        params: fc.jsonValue(),
        result: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(
        fc.oneof(
          near.map((value) => JSON.stringify(value)),
          fc.json(),
          fc.string(),
        ),
        (line) => {
          const message = decodeMcp(line)
          if (message.kind !== 'request') return
          expect(typeof message.id === 'string' || Number.isSafeInteger(message.id)).toBe(true)
          expect(message.method.length).toBeLessThanOrEqual(128)
          expect(Array.isArray(message.params)).toBe(false)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})
