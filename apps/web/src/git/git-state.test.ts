import { expect, test } from 'bun:test'
import { ApiError } from '../api/request.ts'
import type { GitFile, GitStatus } from '../api/git.ts'
import { GitWatch, groupFiles, markOf } from './git-state.ts'

const both: GitFile = { kind: 'changed', path: 'a', staged: 'A', unstaged: 'M' }
const fresh: GitFile = { kind: 'untracked', path: 'b' }
const conflict: GitFile = { kind: 'conflict', path: 'c', sides: 'UU' }

test('a file may be staged and changed again', () => {
  expect(groupFiles([both, fresh, conflict])).toEqual({
    conflicts: [conflict],
    staged: [both],
    unstaged: [both, fresh],
  })
  expect(markOf(both, 'staged')).toEqual({ letter: 'A', word: 'added' })
  expect(markOf(both, 'unstaged')).toEqual({ letter: 'M', word: 'modified' })
  expect(markOf(fresh, 'unstaged')).toEqual({ letter: 'U', word: 'new' })
})

test('looks that overlap become one more', async () => {
  let looks = 0
  const gate = Promise.withResolvers<void>()
  const status: GitStatus = { head: {}, state: null, files: [], truncated: false, untracked: true }
  const watch = new GitWatch(async () => {
    looks += 1
    await gate.promise
    return status
  })
  const all = [watch.refresh(), watch.refresh(), watch.refresh()]
  gate.resolve()
  await Promise.all(all)
  expect(looks).toBe(2)
  expect(watch.state.get()).toEqual({ is: 'ready', status })
})

test('no repository is no failure', async () => {
  const watch = new GitWatch(async () => {
    throw new ApiError('not_a_repository', 'none', 409)
  })
  await watch.refresh()
  expect(watch.state.get()).toEqual({ is: 'none' })
})
