import { describe, expect, test } from 'bun:test'
import { Random } from '@sandwire/testing'
import { decodeAgentMessage } from '../src/conversation/agent-message.ts'
import { decodeClientFrame } from '../src/conversation/frames.ts'

const FRAMES = [
  { type: 'start', sessionId: 's', systemPrompt: 'p', taskId: 't', projectId: 'p', content: 'x' },
  { type: 'message', content: 'x', id: 'm1' },
  { type: 'permission_response', requestId: 'r', decision: 'allow', modifiedInput: { command: 'ls' } },
  { type: 'ask_user_answer', requestId: 'r', answers: { 'Which?': 'A' } },
  { type: 'interrupt' },
  { type: 'close' },
]

describe('frames of browsers', () => {
  test('are decoded as an earlier server had them', () => {
    for (const frame of FRAMES) expect(decodeClientFrame(JSON.stringify(frame)) as object).toEqual(frame)
  })

  test('may have further fields, and null for absent ones', () => {
    for (const frame of FRAMES) {
      const more = { id: null, systemPrompt: null, modifiedInput: null, timestamp: 5, by: 'root', ...frame }
      expect(decodeClientFrame(JSON.stringify(more)) as object).toEqual(frame)
    }
  })

  test('with unknown types or values are refused', () => {
    for (const frame of [
      {},
      [],
      null,
      { type: 'x' },
      { type: 'message' },
      { type: 'message', content: 5 },
      { type: 'message', content: 'x', id: 'a b' },
      { type: 'message', content: 'x'.repeat(70_000) },
      { type: 'permission_response', requestId: 'r', decision: 'maybe' },
      { type: 'ask_user_answer', requestId: 'r', answers: ['A'] },
    ])
      expect(decodeClientFrame(JSON.stringify(frame))).toBeUndefined()
  })
})

/** Changes, removes and inserts characters. */
function mutate(text: string, random: Random): string {
  let mutated = text
  for (let count = random.int(1, 4); count > 0; count -= 1) {
    const at = random.int(0, mutated.length)
    const insert = random.pick([
      '',
      '"',
      '{',
      '}',
      '[',
      ',',
      ':',
      '\\u0000',
      '\ud800',
      '1e999',
      'null',
      '__proto__',
    ])
    mutated = mutated.slice(0, at) + insert + mutated.slice(at + random.int(0, 3))
  }
  return mutated
}

test('decoders never throw on mutated frames', () => {
  const random = new Random(Number(process.env['SANDWIRE_SEED'] ?? 1))
  const events = [
    { seq: 1, atMs: 1, event: { type: 'text', text: 'x' } },
    { partial: { kind: 'text', messageId: 'm', text: 'x' } },
  ]
  for (let count = 0; count < 5_000; count += 1) {
    decodeClientFrame(mutate(JSON.stringify(random.pick(FRAMES)), random))
    decodeAgentMessage(mutate(JSON.stringify(random.pick(events)), random))
  }
  expect(decodeAgentMessage(JSON.stringify(events[0]))).toEqual({ event: events[0] } as never)
})
