import { expect, test } from 'bun:test'
import type { FileEntry, FolderListing } from '../api/workspace.ts'
import { FileTree } from './file-tree.ts'
import { linesOf } from './tree-lines.ts'

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
    (line) => `${' '.repeat(line.depth)}${line.kind === 'note' ? `(${line.text})` : line.path}`,
  )

test('sorts folders and links to folders first, and numbers numerically', async () => {
  const { tree } = treeOf({
    '.': [entry('b10'), entry('b9'), entry('z', 'folder'), entry('l', 'link', 'folder')],
  })
  await tree.load('.')
  expect(shown(tree)).toEqual(['l', 'z', 'b9', 'b10'])
})

test('shows the contents of an expanded folder, or why it cannot', async () => {
  const { tree } = treeOf({ '.': [entry('a', 'folder'), entry('x', 'folder')], a: [entry('f')] })
  await tree.load('.')
  await tree.toggle('a')
  await tree.toggle('x')
  expect(shown(tree)).toEqual(['a', ' a/f', 'x', ' (no such folder)'])
  await tree.toggle('a')
  expect(shown(tree)).toEqual(['a', 'x', ' (no such folder)'])
})

test('reloads what changed, where it is visible', async () => {
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

test('expands the parents of a path', async () => {
  const { tree } = treeOf({ '.': [entry('a', 'folder')], a: [entry('b', 'folder')], 'a/b': [entry('c')] })
  await tree.load('.')
  await tree.reveal('a/b/c')
  expect(shown(tree)).toEqual(['a', ' a/b', '  a/b/c'])
  tree.remove('a')
  expect(shown(tree)).toEqual(['a'])
})

test('drops a response that is older than another', async () => {
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

/** A large folder, with two entries per page. */
function pagedTree(names: string[]): { tree: FileTree; asked: (string | undefined)[] } {
  const asked: (string | undefined)[] = []
  const tree = new FileTree(async (_, after = '') => {
    asked.push(after)
    const rest = names.filter((name) => name > after)
    return { entries: rest.slice(0, 2).map((name) => entry(name)), truncated: rest.length > 2 }
  })
  return { tree, asked }
}

test('loads a large folder page by page, and reloads it as far as it was loaded', async () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const { tree, asked } = pagedTree(names)
  await tree.load('.')
  expect(shown(tree)).toEqual(['a', 'b', '(Loading more…)'])
  expect(linesOf(tree.state.get())[0]).toMatchObject({ position: 1, setSize: -1 })
  await Promise.all([tree.loadMore('.'), tree.loadMore('.')])
  expect(shown(tree)).toEqual(['a', 'b', 'c', 'd', '(Loading more…)'])
  expect(asked).toEqual(['', 'b'])
  names.unshift('0')
  await tree.load('.')
  expect(shown(tree)).toEqual(['0', 'a', 'b', 'c', '(Loading more…)'])
  await tree.loadMore('.')
  expect(shown(tree)).toEqual(['0', 'a', 'b', 'c', 'd', 'e'])
  expect(linesOf(tree.state.get()).at(-1)).toMatchObject({ position: 6, setSize: 6 })
  await tree.loadMore('.')
  expect(asked).toEqual(['', 'b', '', 'a', 'c'])
})

test('can load more of a folder that was reloaded meanwhile', async () => {
  const late = Promise.withResolvers<void>()
  const tree = new FileTree(async (_, after) => {
    if (after !== undefined) await late.promise
    return { entries: [entry(after === undefined ? 'a' : 'b')], truncated: after === undefined }
  })
  await tree.load('.')
  const more = tree.loadMore('.')
  await tree.load('.')
  // The view asks on every change, while a page is already loading.
  const asked: Promise<void>[] = []
  tree.state.subscribe(() => asked.push(tree.loadMore('.')))
  await tree.loadMore('.')
  late.resolve()
  await more
  await Promise.all(asked)
  expect(shown(tree)).toEqual(['a', 'b'])
})

/** A folder with one name on each of two pages. Its reload and its second page wait for `answer`. */
async function reloadingTree() {
  const held = new Map<string | undefined, (listing: FolderListing) => void>()
  const tree = new FileTree((_, after) => new Promise((resolve) => held.set(after, resolve)))
  const answer = (after: string | undefined, name: string): void =>
    held.get(after)?.({ entries: [entry(name)], truncated: after === undefined })
  const first = tree.load('.')
  answer(undefined, 'a')
  await first
  return { tree, answer, reload: tree.load('.'), more: tree.loadMore('.') }
}

test('keeps a page that was loaded while the folder was reloaded', async () => {
  const { tree, answer, reload, more } = await reloadingTree()
  answer('a', 'b')
  await more
  answer(undefined, 'a')
  // The reload asks for the second page too.
  await Bun.sleep(0)
  answer('a', 'b')
  await reload
  expect(shown(tree)).toEqual(['a', 'b'])
})

test('drops a page that follows entries from before a reload', async () => {
  const { tree, answer, reload, more } = await reloadingTree()
  answer(undefined, 'a2')
  await reload
  answer('a', 'b')
  await more
  expect(shown(tree)).toEqual(['a2', '(Loading more…)'])
})

test('reports a page that cannot be loaded, and retries it', async () => {
  let isBroken = false
  const tree = new FileTree(async (_, after) => {
    if (isBroken) throw new Error('no answer')
    return { entries: [entry(after === undefined ? 'a' : 'b')], truncated: after === undefined }
  })
  await tree.load('.')
  isBroken = true
  await tree.loadMore('.')
  expect(shown(tree)).toEqual(['a', '(Cannot load more: no answer)'])
  isBroken = false
  await tree.reload()
  await tree.loadMore('.')
  expect(shown(tree)).toEqual(['a', 'b'])
})

test('keeps the expanded folders of a hidden tree', async () => {
  const { tree, folders } = treeOf({
    '.': [entry('a', 'folder'), entry('b', 'folder'), entry('gone', 'folder')],
    a: [entry('f')],
    b: [],
    gone: [],
  })
  await tree.load('.')
  for (const path of ['a', 'b', 'b', 'gone']) await tree.toggle(path)
  folders['.'] = [entry('a', 'folder'), entry('b', 'folder')]
  await tree.load('.')
  tree.rest()
  expect(Object.keys(tree.state.get().folders)).toEqual(['.', 'a'])
  expect([...tree.state.get().open]).toEqual(['a'])
  folders['a'] = [entry('f'), entry('late')]
  await tree.reload()
  expect(shown(tree)).toEqual(['a', ' a/f', ' a/late', 'b'])
})

test('drops the entries of a large hidden tree', async () => {
  const many = Array.from({ length: 30_000 }, (_, at) => entry(`${at}`))
  const { tree } = treeOf({ '.': [entry('a', 'folder')], a: many })
  await tree.load('.')
  await tree.toggle('a')
  tree.rest()
  expect(tree.state.get().folders).toEqual({})
  await tree.reload()
  expect(shown(tree)).toHaveLength(30_001)
})
