import { expect, test } from 'bun:test'
import { DirtyViews, type Unsaved } from './dirty-views.ts'

function scene(isSaved = true) {
  const dirty = new DirtyViews()
  const log: string[] = []
  const unsaved = (path: string): Unsaved => ({
    sandbox: 'dev',
    path,
    save: async () => {
      log.push(`save ${path}`)
      return isSaved
    },
    discard: () => log.push(`discard ${path}`),
  })
  dirty.set('a', unsaved('a.txt'))
  dirty.set('b', unsaved('b.txt'))
  return { dirty, log, leave: (ids: readonly string[]) => dirty.leave(ids, () => log.push('left')) }
}

test('leaves panes without unsaved text at once', () => {
  const { dirty, log, leave } = scene()
  void leave(['c'])
  expect(log).toEqual(['left'])
  expect(dirty.question.get()).toBeUndefined()
})

test('asks about the unsaved text of the panes that are left, and of no others', async () => {
  const { dirty, log, leave } = scene()
  const done = leave(['a', 'c'])
  expect(dirty.question.get()?.paths).toEqual(['a.txt'])
  expect(log).toEqual([])
  dirty.question.get()?.answer('save')
  await done
  expect(log).toEqual(['save a.txt', 'left'])
})

test('leaves nothing after a cancel, and saves nothing after a discard', async () => {
  const { dirty, log, leave } = scene()
  const canceled = leave(['a', 'b'])
  dirty.question.get()?.answer('cancel')
  await canceled
  expect(log).toEqual([])
  const discarded = leave(['a', 'b'])
  dirty.question.get()?.answer('discard')
  await discarded
  expect(log).toEqual(['discard a.txt', 'discard b.txt', 'left'])
})

test('does not leave a pane that could not be saved', async () => {
  const { dirty, log, leave } = scene(false)
  const done = leave(['a', 'b'])
  dirty.question.get()?.answer('save')
  await done
  expect(log).toEqual(['save a.txt'])
})

test('cancels a pending question when asked another', async () => {
  const { dirty, log, leave } = scene()
  const first = leave(['a'])
  const second = leave(['b'])
  await first
  dirty.question.get()?.answer('discard')
  await second
  expect(log).toEqual(['discard b.txt', 'left'])
})
