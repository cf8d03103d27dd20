import { expect, test } from 'bun:test'
import { branchOf } from './publish-dialog.tsx'

test.each([
  ['Fix issue 42: tabs', 'agent/fix-issue-42-tabs'],
  ['  --  ', 'agent/changes'],
  ['x'.repeat(39) + ' and more', `agent/${'x'.repeat(39)}`],
])('the task %j suggests a branch', (task, branch) => expect(branchOf(task)).toBe(branch))
