import { expect, test } from 'bun:test'
import type { GitFile, GitStatus } from '../api/git.ts'
import { ApiError } from '../api/request.ts'
import {
  GitWatch,
  groupFiles,
  markOf,
  originOf,
  pathsOf,
  parseChangedPath,
  formatRename,
} from './git-status.ts'

const both: GitFile = { kind: 'changed', path: 'a', staged: 'A', unstaged: 'M' }
const fresh: GitFile = { kind: 'untracked', path: 'b' }
const conflict: GitFile = { kind: 'conflict', path: 'c', sides: 'UU' }

test('a file may be staged and changed again', () => {
  expect(groupFiles([both, fresh, conflict])).toEqual({
    conflicts: [conflict],
    staged: [both],
    unstaged: [both, fresh],
  })
  expect(markOf(both, 'staged')).toEqual({ letter: 'A', description: 'added' })
  expect(markOf(both, 'unstaged')).toEqual({ letter: 'M', description: 'modified' })
  expect(markOf(fresh, 'unstaged')).toEqual({ letter: 'U', description: 'new' })
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
  expect(watch.state.get()).toEqual({ is: 'ready', status, isStale: false })
})

test('what is known stays while nobody answers, and only then', async () => {
  const status: GitStatus = { head: {}, state: null, files: [fresh], truncated: false, untracked: true }
  let trouble: Error | undefined
  const watch = new GitWatch(async () => {
    if (trouble !== undefined) throw trouble
    return status
  })
  await watch.refresh()
  trouble = new ApiError('unreachable', 'Server unreachable', 0)
  await watch.refresh()
  expect(watch.state.get()).toEqual({ is: 'ready', status, isStale: true })
  trouble = undefined
  await watch.refresh()
  expect(watch.state.get()).toEqual({ is: 'ready', status, isStale: false })
  trouble = new ApiError('git_failed', 'Cannot use git', 409)
  await watch.refresh()
  expect(watch.state.get()).toEqual({ is: 'failed', message: 'Cannot use git' })
})

test('reports a sandbox without git by its error code', async () => {
  const watch = new GitWatch(async () => {
    throw new ApiError('command_not_found', 'any text', 422)
  })
  await watch.refresh()
  expect(watch.state.get()).toEqual({ is: 'no-git' })
})

test('a renamed file has where it was, in the group in which it was renamed, and goes with that', () => {
  const renamed: GitFile = { kind: 'changed', path: 'b', from: 'a', staged: 'R', unstaged: 'M' }
  expect([originOf(renamed, 'staged'), originOf(renamed, 'unstaged')]).toEqual(['a', undefined])
  expect([pathsOf(renamed, 'staged'), pathsOf(renamed, 'unstaged')]).toEqual([['b', 'a'], ['b']])
  expect(pathsOf({ ...renamed, staged: 'C' }, 'staged')).toEqual(['b'])
})

test('no repository is no failure', async () => {
  const watch = new GitWatch(async () => {
    throw new ApiError('not_a_repository', 'none', 409)
  })
  await watch.refresh()
  expect(watch.state.get()).toEqual({ is: 'none' })
})

test('a path has a folder only where there is one', () => {
  expect(parseChangedPath('lines.txt')).toEqual({ name: 'lines.txt', folder: undefined, isFolder: false })
  expect(parseChangedPath('a/b/c')).toEqual({ name: 'c', folder: 'a/b', isFolder: false })
})

test('a folder of which git knows nothing has its name without the slash', () => {
  expect(parseChangedPath('newdir/')).toEqual({ name: 'newdir', folder: undefined, isFolder: true })
  expect(parseChangedPath('a/newdir/')).toEqual({ name: 'newdir', folder: 'a', isFolder: true })
})

test('a renamed file is said with the name it had, and the folder where that was another one', () => {
  expect(formatRename('ren.txt', 'renamed.txt')).toBe('ren.txt → renamed.txt')
  expect(formatRename('a/one', 'a/two')).toBe('one → two')
  expect(formatRename('a/one', 'b/one')).toBe('a/one → one')
})
