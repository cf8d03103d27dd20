import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { callClaude } from './call-claude.ts'
import { createRuntime } from './runtime.ts'

function openBinding() {
  const calls: unknown[] = []
  const method = (name: string) => (options: unknown) => {
    calls.push([name, options])
    return Promise.resolve({ sessionId: name })
  }
  const binding = {
    idFromName: (name: string) => name,
    get: (id: string) => {
      calls.push(id)
      return { execute: method('execute'), research: method('research'), review: method('review') }
    },
  }
  return { calls, binding: binding as never }
}

test('each action calls its method on an object of its own', async () => {
  const { binding, calls } = openBinding()
  await callClaude(binding, 'do', [{ task: 'a' }], { name: 'one' })
  await callClaude(binding, 'research', [{ task: 'b' }])
  await callClaude(binding, 'review', [{ diff: 'c' }])
  expect(calls.filter((call) => typeof call !== 'string')).toEqual([
    ['execute', { task: 'a' }],
    ['research', { task: 'b' }],
    ['review', { diff: 'c' }],
  ])
  const names = calls.filter((call) => typeof call === 'string')
  expect([names[0], new Set(names).size]).toEqual(['one', 3])
})

test('an unknown action is refused', async () => {
  const { binding } = openBinding()
  expect(String(await rejectionOf(callClaude(binding, 'dance', [{}])))).toContain(
    'Unknown Claude action: dance',
  )
})

test('the runtime adds its defaults to every call', async () => {
  const { binding, calls } = openBinding()
  const { claude } = createRuntime(binding, { repo: 'https://example.com/a', model: 'm' })
  await claude.do({ task: 'x', context: 'y' }, { name: 'n' })
  await claude.review({ diff: 'd', model: 'other' })
  expect(calls.filter((call) => typeof call !== 'string')).toEqual([
    ['execute', { repo: 'https://example.com/a', model: 'm', task: 'x', context: 'y' }],
    ['review', { repo: 'https://example.com/a', model: 'other', diff: 'd' }],
  ])
})
