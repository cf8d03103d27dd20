import { expect, test } from 'bun:test'
import { type AgentForm, planAgent } from './plan-agent.ts'

const FORM: AgentForm = {
  kind: 'run',
  task: ' Fix it ',
  where: 'sandbox',
  sandbox: 'dev',
  repo: '',
  ref: '',
  agent: '',
  model: '',
  permission: 'ask',
  isInteractive: true,
  budget: '',
}

test('a run in a sandbox or of a repository', () => {
  expect(planAgent(FORM)).toEqual({
    kind: 'run',
    run: { task: 'Fix it', sandbox: 'dev', permission: 'ask', interactive: true, keep: true },
  })
  expect(planAgent({ ...FORM, where: 'repo', repo: ' https://x/y ', ref: 'main', budget: '2.5' })).toEqual({
    kind: 'run',
    run: {
      task: 'Fix it',
      repo: 'https://x/y',
      ref: 'main',
      permission: 'ask',
      interactive: true,
      limits: { budgetUsd: 2.5 },
      keep: true,
    },
  })
})

test.each([
  [{ task: ' ' }, 'Enter a task'],
  [{ sandbox: undefined }, 'Select a sandbox'],
  [{ where: 'repo' }, 'Enter the URL of a repository'],
  [{ budget: 'much' }, 'Enter a budget such as 2.50'],
  [{ budget: '-1' }, 'Enter a budget such as 2.50'],
] as const)('%j is refused: %s', (part, problem) => {
  expect(planAgent({ ...FORM, ...part })).toEqual({ kind: 'invalid', problem })
})

test('a conversation may begin without a message, in a sandbox of its own', () => {
  const form = { ...FORM, kind: 'conversation', task: ' ', where: 'empty', budget: '2' } as const
  expect(planAgent(form)).toEqual({
    kind: 'conversation',
    conversation: { permission: 'ask', budgetUsd: 2 },
    message: '',
  })
  expect(planAgent({ ...form, task: 'Hi', where: 'repo', repo: 'https://x/y' })).toMatchObject({
    conversation: { repo: 'https://x/y' },
    message: 'Hi',
  })
})
