import { expect, test } from 'bun:test'
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
