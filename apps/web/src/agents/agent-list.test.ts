import { expect, test } from 'bun:test'
import type { Conversation } from '../api/conversations.ts'
import type { Run } from '../api/runs.ts'
import { type AgentItem, idOf, newlyWaiting } from './agent-list.ts'

function run(id: string, state: Run['state']): AgentItem {
  const run: Run = {
    id,
    state,
    sandbox: 's',
    outcome: null,
    message: null,
    task: '',
    repo: null,
    agent: 'claude',
    model: null,
    permission: 'ask',
    limits: { budgetUsd: 1 },
    createdMs: 0,
    endedMs: null,
    approvals: [],
    usage: { costUsd: 0, turns: 0 },
    result: null,
    publishable: null,
    published: null,
  }
  return { kind: 'run', run }
}

test('a run is reported once each time it begins to wait', () => {
  const ids = (items: readonly AgentItem[]): readonly string[] => items.map(idOf)
  expect(ids(newlyWaiting([run('a', 'running')], [run('a', 'awaiting'), run('b', 'awaiting')]))).toEqual([
    'a',
    'b',
  ])
  expect(newlyWaiting([run('a', 'awaiting')], [run('a', 'awaiting')])).toEqual([])
  expect(newlyWaiting([run('a', 'awaiting')], [run('a', 'running')])).toEqual([])
})

test('a conversation is reported when its turn ends', () => {
  const talk = (state: Conversation['state']): AgentItem => ({
    kind: 'conversation',
    conversation: {
      id: 'c',
      state,
      sandbox: 's',
      title: '',
      repo: null,
      agent: 'claude',
      agentSessionId: null,
      model: null,
      permission: 'ask',
      budgetUsd: 1,
      createdMs: 0,
      usedMs: 0,
      usage: { costUsd: 0 },
      published: null,
    },
  })
  const reported = (before: Conversation['state'], now: Conversation['state']): number =>
    newlyWaiting([talk(before)], [talk(now)]).length
  expect([reported('working', 'idle'), reported('working', 'awaiting')]).toEqual([1, 1])
  expect([reported('idle', 'idle'), reported('restoring', 'idle'), reported('idle', 'working')]).toEqual([
    0, 0, 0,
  ])
})
