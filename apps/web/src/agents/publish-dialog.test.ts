import { expect, test } from 'bun:test'
import { branchOf } from './publish-dialog.tsx'

test.each([
  ['Fix issue 42: tabs', 'agent/fix-issue-42-tabs'],
  ['  --  ', 'agent/changes'],
  ['x'.repeat(39) + ' and more', `agent/${'x'.repeat(39)}`],
])('the task %j suggests a branch', (task, branch) => expect(branchOf(task)).toBe(branch))

test.each([
  ['agent/fix', 'agent/fix-2'],
  ['agent/fix-9', 'agent/fix-10'],
  ['agent/fixes', 'agent/fix'],
  ['other', 'agent/fix'],
])('after the branch %j another one is suggested', (published, branch) =>
  expect(branchOf('Fix', published)).toBe(branch),
)
