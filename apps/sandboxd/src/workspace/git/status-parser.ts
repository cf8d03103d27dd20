import { pathFromBytes } from '@sandwire/protocol'

/** One column of git's status: modified, type changed, added, deleted, renamed, copied. */
export type Change = 'M' | 'T' | 'A' | 'D' | 'R' | 'C'

/** What git says of one path. */
export type StatusEntry =
  | {
      readonly kind: 'changed'
      readonly path: string
      /** Between the last commit and the index. */
      readonly staged: Change | null
      /** Between the index and the work tree. */
      readonly unstaged: Change | null
      /** Where it was renamed or copied from. */
      readonly from?: string
      readonly isSubmodule: boolean
    }
  /** `sides` says what we and they did, as git abbreviates it. */
  | { readonly kind: 'conflict'; readonly path: string; readonly sides: string }
  /** A file, or a folder with `/` at its end that holds nothing else. */
  | { readonly kind: 'untracked'; readonly path: string }

/** Where HEAD is. */
export interface StatusHead {
  /** Absent before the first commit. */
  oid?: string
  /** Absent when HEAD is a commit itself. */
  branch?: string
  upstream?: string
  ahead?: number
  behind?: number
}

const SPACE = 0x20
/** Fields before the path, by what a record begins with. */
const FIELDS: Readonly<Record<string, number>> = { '1': 8, '2': 9, u: 10, '?': 1 }

/** Reads `git status --porcelain=v2 -z --branch`, one token at a time. */
export class StatusParser {
  readonly head: StatusHead = {}
  /** A rename whose second path is yet to come. */
  #renamed: Extract<StatusEntry, { kind: 'changed' }> | undefined

  /** Takes a token; an entry comes back when one is complete. */
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

/** So many fields that end at a space, and what comes after them. */
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
