import { expect, test } from 'bun:test'
import { planRun, type RunForm } from './plan-run.ts'

const FORM: RunForm = {
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
  expect(planRun(FORM)).toEqual({
    kind: 'ready',
    run: { task: 'Fix it', sandbox: 'dev', permission: 'ask', interactive: true, keep: true },
  })
  expect(planRun({ ...FORM, where: 'repo', repo: ' https://x/y ', ref: 'main', budget: '2.5' })).toEqual({
    kind: 'ready',
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
  expect(planRun({ ...FORM, ...part })).toEqual({ kind: 'invalid', problem })
})
