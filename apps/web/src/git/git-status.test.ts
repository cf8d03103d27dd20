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

test('overlapping refreshes share one further request', async () => {
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
  expect(watch.state.get()).toEqual({ kind: 'ready', status, isStale: false })
})

test('keeps the known status while the server is unreachable, and only then', async () => {
  const status: GitStatus = { head: {}, state: null, files: [fresh], truncated: false, untracked: true }
  let problem: Error | undefined
  const watch = new GitWatch(async () => {
    if (problem !== undefined) throw problem
    return status
  })
  await watch.refresh()
  problem = new ApiError('unreachable', 'Server unreachable', 0)
  await watch.refresh()
  expect(watch.state.get()).toEqual({ kind: 'ready', status, isStale: true })
  problem = undefined
  await watch.refresh()
  expect(watch.state.get()).toEqual({ kind: 'ready', status, isStale: false })
  problem = new ApiError('git_failed', 'Cannot use git', 409)
  await watch.refresh()
  expect(watch.state.get()).toEqual({ kind: 'failed', message: 'Cannot use git' })
})

test('reports a sandbox without git by its error code', async () => {
  const watch = new GitWatch(async () => {
    throw new ApiError('command_not_found', 'any text', 422)
  })
  await watch.refresh()
  expect(watch.state.get()).toEqual({ kind: 'no-git' })
})

test('a renamed file has its former path only in the group that renames it, and is staged with it', () => {
  const renamed: GitFile = { kind: 'changed', path: 'b', from: 'a', staged: 'R', unstaged: 'M' }
  expect([originOf(renamed, 'staged'), originOf(renamed, 'unstaged')]).toEqual(['a', undefined])
  expect([pathsOf(renamed, 'staged'), pathsOf(renamed, 'unstaged')]).toEqual([['b', 'a'], ['b']])
  expect(pathsOf({ ...renamed, staged: 'C' }, 'staged')).toEqual(['b'])
})

test('reports a missing repository as no error', async () => {
  const watch = new GitWatch(async () => {
    throw new ApiError('not_a_repository', 'none', 409)
  })
  await watch.refresh()
  expect(watch.state.get()).toEqual({ kind: 'none' })
})

test('splits a path into name and folder', () => {
  expect(parseChangedPath('lines.txt')).toEqual({ name: 'lines.txt', folder: undefined, isFolder: false })
  expect(parseChangedPath('a/b/c')).toEqual({ name: 'c', folder: 'a/b', isFolder: false })
})

test('strips the slash of an untracked folder', () => {
  expect(parseChangedPath('newdir/')).toEqual({ name: 'newdir', folder: undefined, isFolder: true })
  expect(parseChangedPath('a/newdir/')).toEqual({ name: 'newdir', folder: 'a', isFolder: true })
})

test('formats a rename, with the folder only if it changed', () => {
  expect(formatRename('ren.txt', 'renamed.txt')).toBe('ren.txt → renamed.txt')
  expect(formatRename('a/one', 'a/two')).toBe('one → two')
  expect(formatRename('a/one', 'b/one')).toBe('a/one → one')
})
