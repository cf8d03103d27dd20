import { pathFromBytes, SandwireError } from '@sandwire/protocol'
import { callGit, expectSuccess, readTokens } from './git-command.ts'
import { isUnfinished, type Repository } from './repository.ts'

interface StatusLimits {
  readonly maxEntries: number
  readonly maxBytes: number
  /** Timeout with untracked files. */
  readonly timeMs: number
  /** Timeout of the second attempt, with tracked files only. */
  readonly trackedMs: number
}

export const STATUS_LIMITS: StatusLimits = {
  maxEntries: 10_000,
  maxBytes: 4 * 1024 * 1024,
  timeMs: 15_000,
  trackedMs: 10_000,
}

export interface Status {
  readonly head: StatusHead
  readonly entries: readonly StatusEntry[]
  readonly truncated: boolean
  /** False when untracked files were omitted, because listing them took too long. */
  readonly hasUntracked: boolean
}

/** Submodules are compared by commit only: looking into one would use its own configuration. */
const OPTIONS = [
  '--porcelain=v2',
  '--branch',
  '--find-renames',
  '--ignore-submodules=dirty',
  '--null',
] as const

/** Reads the status of the work tree. */
export async function readStatus(repository: Repository, limits = STATUS_LIMITS): Promise<Status> {
  try {
    return await read(repository, { untracked: 'normal', timeMs: limits.timeMs, limits })
  } catch (caught) {
    if (SandwireError.from(caught).code !== 'timed_out') throw caught
    return read(repository, { untracked: 'no', timeMs: limits.trackedMs, limits })
  }
}

async function read(
  repository: Repository,
  {
    untracked,
    timeMs,
    limits,
  }: { untracked: 'normal' | 'no'; timeMs: number; limits: Pick<StatusLimits, 'maxEntries' | 'maxBytes'> },
): Promise<Status> {
  const args = ['status', ...OPTIONS, `--untracked-files=${untracked}`] as const
  const tool = await callGit(repository, { args, timeMs })
  const parser = new StatusParser()
  const entries: StatusEntry[] = []
  const hasUntracked = untracked === 'normal'
  let sizeBytes = 0
  for await (const token of readTokens(tool)) {
    sizeBytes += token.length
    const entry = parser.push(token)
    if (entry === undefined || (entry.kind === 'untracked' && isUnfinished(entry.path))) continue
    if (entries.length >= limits.maxEntries || sizeBytes > limits.maxBytes)
      return { head: parser.head, entries, truncated: true, hasUntracked }
    entries.push(entry)
  }
  await expectSuccess(tool, 'Cannot read the status')
  return { head: parser.head, entries, truncated: false, hasUntracked }
}

/** A status column: modified, type changed, added, deleted, renamed, copied. */
export type Change = 'M' | 'T' | 'A' | 'D' | 'R' | 'C'

export type StatusEntry =
  | {
      readonly kind: 'changed'
      readonly path: string
      /** Between the last commit and the index. */
      readonly staged: Change | null
      /** Between the index and the work tree. */
      readonly unstaged: Change | null
      /** Source of a rename or copy. */
      readonly from?: string
      readonly isSubmodule: boolean
    }
  /** `sides` has git's letters for our and their change. */
  | { readonly kind: 'conflict'; readonly path: string; readonly sides: string }
  /** A file, or a folder with a trailing `/` that contains only untracked files. */
  | { readonly kind: 'untracked'; readonly path: string }

interface StatusHead {
  /** Absent before the first commit. */
  oid?: string
  /** Absent when HEAD is detached. */
  branch?: string
  upstream?: string
  ahead?: number
  behind?: number
}

const SPACE = 0x20
/** Number of fields before the path, by record type. */
const FIELDS: Readonly<Record<string, number>> = { '1': 8, '2': 9, u: 10, '?': 1 }

/** Parses `git status --porcelain=v2 -z --branch`, one token at a time. */
export class StatusParser {
  readonly head: StatusHead = {}
  /** A rename whose second path follows. */
  #renamed: Extract<StatusEntry, { kind: 'changed' }> | undefined

  /** Consumes a token; returns an entry when it is complete. */
  push(token: Uint8Array): StatusEntry | undefined {
    const renamed = this.#renamed
    if (renamed !== undefined) {
      this.#renamed = undefined
      return { ...renamed, from: pathFromBytes(token) }
    }
    if (token[0] === 0x23) this.#readHeader(pathFromBytes(token))
    return this.#readEntry(token)
  }

  #readEntry(token: Uint8Array): StatusEntry | undefined {
    const type = String.fromCharCode(token[0] ?? 0)
    const [fields, rest] = splitFields(token, FIELDS[type] ?? 0)
    const [, sides = '', submodule = ''] = fields
    const path = pathFromBytes(rest)
    if (type === '?') return { kind: 'untracked', path }
    if (type === 'u') return { kind: 'conflict', path, sides }
    if (type !== '1' && type !== '2') return undefined
    const entry = {
      kind: 'changed',
      path,
      staged: toChange(sides[0]),
      unstaged: toChange(sides[1]),
      isSubmodule: submodule.startsWith('S'),
    } as const
    if (type === '1') return entry
    this.#renamed = entry
    return undefined
  }

  #readHeader(line: string): void {
    const [, name, value = ''] = /^# branch\.(\S+) (.*)$/s.exec(line) ?? []
    if (name === 'oid' && value !== '(initial)') this.head.oid = value
    if (name === 'head' && value !== '(detached)') this.head.branch = value
    if (name === 'upstream') this.head.upstream = value
    const [, ahead, behind] = (name === 'ab' && /^\+([0-9]+) -([0-9]+)$/.exec(value)) || []
    if (ahead !== undefined) this.head.ahead = Number(ahead)
    if (behind !== undefined) this.head.behind = Number(behind)
  }
}

/** Splits off this many space-separated fields; the rest is the last element. */
function splitFields(token: Uint8Array, count: number): readonly [string[], Uint8Array] {
  const fields: string[] = []
  let at = 0
  while (fields.length < count) {
    const end = token.indexOf(SPACE, at)
    if (end < 0) break
    fields.push(pathFromBytes(token.subarray(at, end)))
    at = end + 1
  }
  return [fields, token.subarray(at)]
}

const CHANGES: readonly Change[] = ['M', 'T', 'A', 'D', 'R', 'C']

function toChange(letter: string | undefined): Change | null {
  return CHANGES.find((change) => change === letter) ?? null
}
