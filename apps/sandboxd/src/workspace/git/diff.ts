import { SandwireError } from '@sandwire/protocol'
import type { RunningTool } from '../tool.ts'
import { callGit } from './call.ts'
import { type DiffFile, DiffParser } from './diff-parser.ts'
import { expectSuccess } from './output.ts'
import { findCommit, type Repository, requireCommit } from './repository.ts'

/**
 * What is compared: the index with the work tree; with `staged` the last commit with the index; or commits by name, `to` alone with
 * the commit before it, which is nothing before the first.
 */
export interface DiffRequest {
  readonly path?: string | undefined
  /** Where the path was before it was renamed: without it, a renamed file is a new one. */
  readonly oldPath?: string | undefined
  readonly staged: boolean
  readonly from?: string | undefined
  readonly to?: string | undefined
}

export interface DiffLimits {
  readonly maxFiles: number
  readonly maxBytes: number
  readonly timeMs: number
}

const DIFF_LIMITS: DiffLimits = { maxFiles: 5_000, maxBytes: 2 * 1024 * 1024, timeMs: 20_000 }

export interface Diff {
  readonly files: readonly DiffFile[]
  /** Unified. */
  readonly text: string
  /** Bytes that are not UTF-8 were replaced. */
  readonly isLossy: boolean
  readonly truncated: false | 'files' | 'bytes' | 'time'
}

/** What must hold whatever is configured: no programs, no taste, no look into submodules. */
const OPTIONS = [
  '--no-ext-diff',
  '--no-textconv',
  '--no-color',
  '--no-relative',
  '--find-renames',
  '-O/dev/null',
  '--src-prefix=a/',
  '--dst-prefix=b/',
  '--unified=3',
  '--inter-hunk-context=0',
  '--submodule=short',
  '--ignore-submodules=dirty',
  '-z',
  '--raw',
  '--numstat',
  '--patch',
] as const

/** A folder with nothing in it, by the name that every git knows it by. */
const EMPTY_SHA1 = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
const EMPTY_SHA256 = '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321'

/** Compares. Throws `git_failed` when a name stands for no commit. */
export async function readDiff(
  repository: Repository,
  request: DiffRequest,
  limits = DIFF_LIMITS,
): Promise<Diff> {
  const { timeMs } = limits
  const args = ['diff', ...OPTIONS, ...(await chooseSides(repository, request))] as const
  const { path = '.', oldPath } = request
  return read(await callGit(repository, { args, path, oldPath, timeMs }), limits)
}

async function chooseSides(
  repository: Repository,
  { staged, from, to }: DiffRequest,
): Promise<readonly string[]> {
  if (to !== undefined && staged)
    throw new SandwireError('bad_request', 'Cannot use parameter "to": it does not go with "staged"')
  if (to !== undefined && from === undefined) return sidesOf(repository, to)
  const oids: string[] = []
  if (from !== undefined) oids.push(await requireCommit(repository, from))
  if (to !== undefined) oids.push(await requireCommit(repository, to))
  // A file in conflict has no one version in the index: ours stands for it.
  if (oids.length === 0 && !staged) return ['--ours']
  return staged ? ['--cached', ...oids] : oids
}

/** A commit and the one before it. */
async function sidesOf(repository: Repository, ref: string): Promise<readonly string[]> {
  const oid = await requireCommit(repository, ref)
  const before = await findCommit(repository, `${oid}^1`)
  return [before ?? (oid.length === EMPTY_SHA1.length ? EMPTY_SHA1 : EMPTY_SHA256), oid]
}

async function read(tool: RunningTool, { maxFiles, maxBytes }: DiffLimits): Promise<Diff> {
  const parser = new DiffParser()
  const parts: Uint8Array[] = []
  let size = 0
  let cut: 'files' | 'bytes' | undefined
  for await (const chunk of tool.stdout) {
    const text = parser.push(chunk)
    parts.push(text)
    size += text.length
    if (parser.files.size > maxFiles) cut = 'files'
    else if (size > maxBytes) cut = 'bytes'
    if (cut !== undefined) break
  }
  const truncated = cut ?? ((await tool.exited).isLate ? 'time' : false)
  if (truncated === false) await expectSuccess(tool, 'Cannot compare')
  const bytes = Buffer.concat(parts).subarray(0, maxBytes)
  const text = (truncated === false ? bytes : wholeLines(bytes)).toString()
  const files = [...parser.files.values()].slice(0, maxFiles)
  return {
    files,
    text,
    isLossy: !Buffer.from(text).equals(bytes.subarray(0, Buffer.byteLength(text))),
    truncated,
  }
}

function wholeLines(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1)
}
