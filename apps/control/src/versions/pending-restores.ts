import { type Exec, numberOf } from '../sql.ts'
import { toVersion } from './version-rows.ts'
import type { Version } from './version-store.ts'

/** What the next start does to the files. */
export interface PendingRestore {
  readonly version: Version
  /** False: the files of the sandbox are missing. */
  readonly isRequested: boolean
  /** Set when only the workspace becomes that of the version. */
  readonly rest?: {
    /** Has the other folders. */
    readonly version: Version
    readonly isMissing: boolean
  }
}

/** The restore that the next start performs. */
export class PendingRestores {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  /** The version that replaces the files at the next start; undefined: they stay. */
  get next(): PendingRestore | undefined {
    const query = 'SELECT versions.*, is_requested FROM versions JOIN pending_restore USING (number)'
    const [row] = this.#exec(query)
    if (row === undefined) return undefined
    const [rest] = this.#exec(
      'SELECT versions.*, is_rest_missing FROM versions JOIN partial_restore ON number = rest',
    )
    return {
      version: toVersion(row),
      isRequested: numberOf(row, 'is_requested') === 1,
      ...(rest === undefined
        ? {}
        : { rest: { version: toVersion(rest), isMissing: numberOf(rest, 'is_rest_missing') === 1 } }),
    }
  }

  set(number: number, isRequested: boolean): void {
    this.#exec('INSERT OR REPLACE INTO pending_restore VALUES (1, ?, ?)', number, isRequested ? 1 : 0)
    this.#exec('DELETE FROM partial_restore')
  }

  /** Has the next start restore the workspace from a version, and the other folders, if they are missing, from `rest`. */
  setWorkspace(number: number, rest: { readonly number: number; readonly isMissing: boolean }): void {
    this.set(number, true)
    this.#exec('INSERT INTO partial_restore VALUES (1, ?, ?)', rest.number, rest.isMissing ? 1 : 0)
  }

  /** The disk of a sandbox whose workspace is to be restored is missing. */
  setRestMissing(): void {
    this.#exec('UPDATE partial_restore SET is_rest_missing = 1')
  }

  clear(): void {
    this.#exec('DELETE FROM pending_restore')
    this.#exec('DELETE FROM partial_restore')
  }
}
