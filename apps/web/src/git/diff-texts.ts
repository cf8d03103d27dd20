import { type GitDiff, type GitRepository, readDiff, showText } from '../api/git.ts'
import { readFile } from '../api/workspace.ts'
import { MAX_OPEN_BYTES, textOf } from '../files/file-kind.ts'
import { joinPath, ROOT } from '../files/paths.ts'
import type { View } from '../layout/layout.ts'
import { gitTexts } from '../texts/git.ts'
import { applyDiff, undoDiff } from './patch.ts'

/** What a diff pane shows: both texts, or git's own output when they are not available. */
export type DiffTexts =
  | { readonly kind: 'texts'; readonly before: string; readonly after: string }
  | ({ readonly kind: 'words' } & GitDiffText)
  | { readonly kind: 'binary' }
  | { readonly kind: 'same' }
  /** Renamed without other changes. */
  | { readonly kind: 'renamed' }

type DiffView = Extract<View, { kind: 'diff' }>

function repositoryOf({ sandbox, repo = ROOT }: DiffView): GitRepository {
  return { sandbox, repo }
}

async function readGitDiff(view: DiffView): Promise<GitDiff> {
  const { path, of, from: old } = view
  const which = typeof of === 'string' ? { staged: of === 'staged' } : { to: of.commit }
  return readDiff(repositoryOf(view), { path, old, ...which })
}

/** A text that may not exist: before a file was added, or after it was deleted. */
async function orEmpty(read: () => Promise<string | undefined>): Promise<string | undefined> {
  try {
    return await read()
  } catch (caught) {
    if (caught instanceof Error && 'code' in caught && caught.code === 'file_not_found') return ''
    throw caught
  }
}

/** The text of a file; undefined when it is not a text or too large to show. */
async function readText(sandbox: string, path: string): Promise<string | undefined> {
  const version = await readFile(sandbox, path, (sizeBytes) => sizeBytes <= MAX_OPEN_BYTES)
  return 'bytes' in version ? textOf(version.bytes) : undefined
}

async function textsOf(
  view: DiffView,
  diff: GitDiff,
): Promise<{ before?: string | undefined; after?: string | undefined }> {
  const { sandbox, path, of } = view
  const repository = repositoryOf(view)
  const old = diff.files[0]?.from ?? path
  if (of === 'unstaged') {
    const after = await orEmpty(() => readText(sandbox, joinPath(repository.repo, path)))
    return { after, before: after === undefined ? undefined : undoDiff(after, diff.diff) }
  }
  const [from, to] = of === 'staged' ? ['HEAD', undefined] : [`${of.commit}~1`, of.commit]
  const before = diff.files[0]?.status === 'A' ? '' : await orEmpty(() => showText(repository, old, from))
  if (before === undefined) return {}
  if (to === undefined) return { before, after: applyDiff(before, diff.diff) }
  return { before, after: await orEmpty(() => showText(repository, path, to)) }
}

/** The command that shows the same in a terminal. */
function commandOf({ of }: DiffView): string {
  if (of === 'unstaged') return 'git diff'
  return of === 'staged' ? 'git diff --staged' : `git show ${of.commit.slice(0, 8)}`
}

/** Reads both sides of a diff. */
export async function readTexts(view: DiffView): Promise<DiffTexts> {
  const diff = await readGitDiff(view)
  const [file] = diff.files
  if (file === undefined) return { kind: 'same' }
  if (file.from !== undefined && file.added + file.removed === 0 && !file.binary) return { kind: 'renamed' }
  if (diff.files.some(({ binary }) => binary)) return { kind: 'binary' }
  const words: DiffTexts = { kind: 'words', ...formatGitDiff(diff, commandOf(view)) }
  if (diff.lossy || diff.truncated !== false) return words
  const { before, after } = await textsOf(view, diff)
  if (before === undefined || after === undefined || !canCompare(before, after)) return words
  return { kind: 'texts', before, after }
}

/** Maximum combined length of two texts that are compared. */
const MAX_TEXTS_CHARS = 8 * 1024 * 1024
/** Maximum length of git's output that is shown. */
const MAX_DIFF_CHARS = 256 * 1024

/** Git's output, with a note when it is truncated. */
interface GitDiffText {
  readonly text: string
  readonly note?: string
}

export function canCompare(before: string, after: string): boolean {
  return before.length + after.length <= MAX_TEXTS_CHARS
}

/** As much of a diff as can be shown, with a note when that is not all. */
export function formatGitDiff({ diff, files, truncated }: GitDiff, command: string): GitDiffText {
  if (truncated === false && diff.length <= MAX_DIFF_CHARS) return { text: diff }
  const end = diff.lastIndexOf('\n', MAX_DIFF_CHARS)
  const sum = (key: 'added' | 'removed'): string =>
    gitTexts.diff.lines(files.reduce((total, file) => total + file[key], 0))
  return {
    text: diff.slice(0, end + 1),
    note: gitTexts.diff.tooLarge(sum('added'), sum('removed'), command),
  }
}
