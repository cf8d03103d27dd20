import { expect, test } from 'bun:test'
import type { GitFile } from '../api/git.ts'
import { discardText } from './discard-dialog.tsx'

const changed: GitFile = { kind: 'changed', path: 'a', staged: null, unstaged: 'M' }
const fresh: GitFile = { kind: 'untracked', path: 'b' }
const folder: GitFile = { kind: 'untracked', path: 'newdir/' }

test('names a new folder as such, and its contents', () => {
  expect(discardText([folder])).toEqual({
    title: 'Delete this new folder?',
    losses: ['Deleted permanently: 1 new folder and its contents. Git has no copy.'],
    yes: 'Delete',
  })
})

test('says that tracked files are restored, not deleted', () => {
  expect(discardText([changed])).toEqual({
    title: 'Discard changes in this file?',
    losses: ['Unstaged changes in 1 file will be lost.'],
    yes: 'Discard',
  })
})

test('names every kind of loss', () => {
  const { title, losses } = discardText([changed, fresh, folder])
  expect(title).toBe('Discard changes in 3 files and folders?')
  expect(losses.join(' ')).toContain('1 new file and 1 new folder and its contents')
})
