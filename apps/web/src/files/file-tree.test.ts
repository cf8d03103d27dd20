import { expect, test } from 'bun:test'
import type { FileEntry } from '../api/workspace.ts'
import { FileTree, linesOf } from './file-tree.ts'

function entry(name: string, kind: FileEntry['kind'] = 'file', target?: 'file' | 'folder'): FileEntry {
  return { name, kind, size: 0, mtimeMs: 0, etag: '', ...(target === undefined ? {} : { target }) }
}

function treeOf(folders: Record<string, FileEntry[]>): {
  tree: FileTree
  folders: Record<string, FileEntry[]>
} {
  const tree = new FileTree(async (path) => {
    const entries = folders[path]
    if (entries === undefined) throw new Error('no such folder')
    return { entries, truncated: false }
  })
  return { tree, folders }
}

const shown = (tree: FileTree): readonly string[] =>
  linesOf(tree.state.get()).map(
    ({ path, depth, note }) => `${' '.repeat(depth)}${path}${note === undefined ? '' : ` (${note})`}`,
  )

test('folders come first, links to folders with them, and names count as people count', async () => {
  const { tree } = treeOf({
    '.': [entry('b10'), entry('b9'), entry('z', 'folder'), entry('l', 'link', 'folder')],
  })
  await tree.load('.')
  expect(shown(tree)).toEqual(['l', 'z', 'b9', 'b10'])
})

test('an open folder shows what is in it, or why it does not', async () => {
  const { tree } = treeOf({ '.': [entry('a', 'folder'), entry('x', 'folder')], a: [entry('f')] })
  await tree.load('.')
  await tree.toggle('a')
  await tree.toggle('x')
  expect(shown(tree)).toEqual(['a', ' a/f', 'x (no such folder)'])
  await tree.toggle('a')
  expect(shown(tree)).toEqual(['a', 'x (no such folder)'])
})

test('what changes is read again, where somebody looks', async () => {
  const { tree, folders } = treeOf({ '.': [entry('a', 'folder')], a: [entry('f')] })
  await tree.load('.')
  await tree.toggle('a')
  folders['a'] = [entry('f'), entry('g')]
  folders['.'] = [entry('a', 'folder'), entry('new')]
  await tree.follow({ kind: 'change', paths: ['a/g'] })
  expect(shown(tree)).toEqual(['a', ' a/f', ' a/g'])
  await tree.follow({ kind: 'overflow' })
  expect(shown(tree)).toEqual(['a', ' a/f', ' a/g', 'new'])
})

test('the way to a file is opened', async () => {
  const { tree } = treeOf({ '.': [entry('a', 'folder')], a: [entry('b', 'folder')], 'a/b': [entry('c')] })
  await tree.load('.')
  await tree.reveal('a/b/c')
  expect(shown(tree)).toEqual(['a', ' a/b', '  a/b/c'])
  tree.forget('a')
  expect(shown(tree)).toEqual(['a'])
})

test('an answer that comes late does not undo a newer one', async () => {
  const answers: ((entries: FileEntry[]) => void)[] = []
  const tree = new FileTree(
    () => new Promise((resolve) => answers.push((entries) => resolve({ entries, truncated: false }))),
  )
  const [first, second] = [tree.load('.'), tree.load('.')]
  answers[1]?.([entry('new')])
  answers[0]?.([entry('old')])
  await Promise.all([first, second])
  expect(shown(tree)).toEqual(['new'])
})
