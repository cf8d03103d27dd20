import { type GitDiff, readDiff, showText } from '../api/git.ts'
import { readFile } from '../api/workspace.ts'
import { textOf } from '../files/file-kind.ts'
import type { View } from '../layout/layout.ts'
import { areDrawable, type DiffWords, wordsOf } from './diff-words.ts'
import { applyDiff, undoDiff } from './patch.ts'

/** What a pane shows of a difference: both texts, or git's own words where there are none. */
export type DiffTexts =
  | { readonly is: 'texts'; readonly before: string; readonly after: string }
  | ({ readonly is: 'words' } & DiffWords)
  | { readonly is: 'binary' }
  | { readonly is: 'same' }

type DiffView = Extract<View, { kind: 'diff' }>

async function readWords({ sandbox, path, of }: DiffView): Promise<GitDiff> {
  if (of === 'staged' || of === 'unstaged') return readDiff(sandbox, { path, staged: of === 'staged' })
  return readDiff(sandbox, { path, from: `${of.commit}~1`, to: of.commit })
}

/** A text that may not be there: a new file has none before, a deleted one none after. */
async function orEmpty(read: () => Promise<string | undefined>): Promise<string | undefined> {
  try {
    return await read()
  } catch (caught) {
    if (caught instanceof Error && 'code' in caught && caught.code === 'file_not_found') return ''
    throw caught
  }
}

async function textsOf(
  view: DiffView,
  diff: GitDiff,
): Promise<{ before?: string | undefined; after?: string | undefined }> {
  const { sandbox, path, of } = view
  const old = diff.files[0]?.from ?? path
  if (of === 'unstaged') {
    const after = await orEmpty(async () => textOf((await readFile(sandbox, path)).bytes))
    return { after, before: after === undefined ? undefined : undoDiff(after, diff.diff) }
  }
  const [from, to] = of === 'staged' ? ['HEAD', undefined] : [`${of.commit}~1`, of.commit]
  const before = diff.files[0]?.status === 'A' ? '' : await orEmpty(() => showText(sandbox, old, from))
  if (before === undefined) return {}
  if (to === undefined) return { before, after: applyDiff(before, diff.diff) }
  return { before, after: await orEmpty(() => showText(sandbox, path, to)) }
}

/** What shows the same in a terminal. */
function commandOf({ of }: DiffView): string {
  if (of === 'unstaged') return 'git diff'
  return of === 'staged' ? 'git diff --staged' : `git show ${of.commit.slice(0, 8)}`
}

/** Reads both sides of a difference. */
export async function readTexts(view: DiffView): Promise<DiffTexts> {
  const diff = await readWords(view)
  if (diff.files.length === 0) return { is: 'same' }
  if (diff.files.some(({ binary }) => binary)) return { is: 'binary' }
  const words: DiffTexts = { is: 'words', ...wordsOf(diff, commandOf(view)) }
  if (diff.lossy || diff.truncated !== false) return words
  const { before, after } = await textsOf(view, diff)
  if (before === undefined || after === undefined || !areDrawable(before, after)) return words
  return { is: 'texts', before, after }
}
