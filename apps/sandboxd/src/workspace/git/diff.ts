import { pathFromBytes, SandwireError } from '@sandwire/protocol'
import { callGit, expectSuccess, NulTokens } from './git-command.ts'
import { findCommit, type Repository, requireCommit } from './repository.ts'
import type { RunningTool } from '../tool.ts'

/**
 * Compares the index with the work tree; with `staged`, the last commit with the index; or two commits. `to` alone is compared
 * with its parent.
 */
interface DiffRequest {
  readonly path?: string | undefined
  /** The path before a rename; without it a renamed file appears as new. */
  readonly oldPath?: string | undefined
  readonly staged: boolean
  readonly from?: string | undefined
  readonly to?: string | undefined
}

interface DiffLimits {
  readonly maxFiles: number
  readonly maxBytes: number
  readonly timeMs: number
}

const DIFF_LIMITS: DiffLimits = { maxFiles: 5_000, maxBytes: 2 * 1024 * 1024, timeMs: 20_000 }

export interface Diff {
  readonly files: readonly DiffFile[]
  /** Unified format. */
  readonly text: string
  readonly isLossy: boolean
  readonly truncated: false | 'files' | 'bytes' | 'time'
}

/** Independent of the configuration: no programs, no preferences, no submodules. */
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

/** The empty tree, which every git knows. */
const EMPTY_SHA1 = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
const EMPTY_SHA256 = '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321'

/** Throws `git_failed` when a name is not a commit. */
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
    throw new SandwireError('bad_request', 'Cannot use parameter "to": it cannot be combined with "staged"')
  if (to !== undefined && from === undefined) return sidesOf(repository, to)
  const oids: string[] = []
  if (from !== undefined) oids.push(await requireCommit(repository, from))
  if (to !== undefined) oids.push(await requireCommit(repository, to))
  // A file in conflict has several versions in the index: ours is compared.
  if (oids.length === 0 && !staged) return ['--ours']
  return staged ? ['--cached', ...oids] : oids
}

/** A commit and its parent. */
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

/** One file of a diff. */
interface DiffFile {
  readonly path: string
  /** Source of a rename or copy. */
  from?: string
  /** Git's status letter: A, C, D, M, R, T or U. */
  readonly status: string
  /** In lines; 0 for a binary file. */
  added: number
  removed: number
  isBinary: boolean
}

type State =
  | { readonly at: 'start' }
  /** The paths of a raw record follow. */
  | { readonly at: 'raw'; readonly status: string; readonly from?: string }
  /** Both paths of a renamed file follow. */
  | { readonly at: 'counted'; readonly counts: Counts; readonly from?: string }
  | { readonly at: 'patch' }

interface Counts {
  readonly added: number
  readonly removed: number
  readonly isBinary: boolean
}

const COLON = 0x3a

/** Parses `git diff -z --raw --numstat --patch`: files, their counts, an empty token, then the patch. */
export class DiffParser {
  readonly files = new Map<string, DiffFile>()
  readonly #tokens = new NulTokens()
  #state: State = { at: 'start' }

  /** Consumes bytes; returns those that belong to the patch. */
  push(chunk: Uint8Array): Uint8Array {
    if (this.#state.at === 'patch') return chunk
    this.#tokens.push(chunk)
    for (let token = this.#tokens.next(); token !== undefined; token = this.#tokens.next()) {
      this.#state = this.#take(token)
      if (this.#state.at === 'patch') return this.#tokens.rest()
    }
    return new Uint8Array()
  }

  #take(token: Uint8Array): State {
    const state = this.#state
    switch (state.at) {
      case 'start':
        return this.#begin(token)
      case 'raw':
        if (/^[RC]/.test(state.status) && state.from === undefined)
          return { ...state, from: pathFromBytes(token) }
        this.#addFile(pathFromBytes(token), state)
        return { at: 'start' }
      case 'counted':
        if (state.from === undefined) return { ...state, from: pathFromBytes(token) }
        this.#count(pathFromBytes(token), state.counts)
        return { at: 'start' }
      case 'patch':
        return state
    }
  }

  #begin(token: Uint8Array): State {
    if (token.length === 0) return { at: 'patch' }
    const text = pathFromBytes(token)
    if (token[0] === COLON) return { at: 'raw', status: text.slice(text.lastIndexOf(' ') + 1) }
    const [, added = '', removed = '', path = ''] = /^([0-9]+|-)\t([0-9]+|-)\t(.*)$/s.exec(text) ?? []
    const counts = { added: Number(added) || 0, removed: Number(removed) || 0, isBinary: added === '-' }
    if (path === '') return { at: 'counted', counts }
    this.#count(path, counts)
    return { at: 'start' }
  }

  #addFile(path: string, { status, from }: { readonly status: string; readonly from?: string }): void {
    // A conflict is listed first and again as a change of our side.
    if (this.files.has(path)) return
    const counts = { added: 0, removed: 0, isBinary: false }
    const origin = from === undefined ? {} : { from }
    this.files.set(path, { path, ...origin, status: status.slice(0, 1), ...counts })
  }

  #count(path: string, counts: Counts): void {
    const file = this.files.get(path)
    if (file !== undefined) Object.assign(file, counts)
  }
}
