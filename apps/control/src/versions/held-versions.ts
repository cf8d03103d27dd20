import { type Exec, numberOf, textOf } from '../sql.ts'

/** Versions that all conversations and runs together keep in a sandbox: each save reads the list of all versions. */
const MAX_HELD = 200

/** Versions that conversations and runs keep, because their messages can be restored to them. */
export class HeldVersions {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  /** Replaces the versions that a conversation or run keeps. The oldest of all are given up when there are too many. */
  set(holder: string, numbers: readonly number[]): void {
    this.#exec('DELETE FROM held_versions WHERE holder = ?', holder)
    for (const number of new Set(numbers))
      this.#exec('INSERT INTO held_versions SELECT ?, number FROM versions WHERE number = ?', holder, number)
    this.#exec(
      `DELETE FROM held_versions WHERE number NOT IN
       (SELECT DISTINCT number FROM held_versions ORDER BY number DESC LIMIT ?)`,
      MAX_HELD,
    )
    if (numbers.length === 0) this.#exec('DELETE FROM workspace_restores WHERE holder = ?', holder)
  }

  has(number: number): boolean {
    return this.#exec('SELECT number FROM held_versions WHERE number = ? LIMIT 1', number).length > 0
  }

  /** The last restore that a conversation or run has requested. */
  lastRestore(
    holder: string,
  ): { readonly key: string; readonly undoVersion: number; readonly isDone: boolean } | undefined {
    const [row] = this.#exec('SELECT * FROM workspace_restores WHERE holder = ?', holder)
    return row === undefined
      ? undefined
      : {
          key: textOf(row, 'key'),
          undoVersion: numberOf(row, 'present'),
          isDone: numberOf(row, 'is_done') === 1,
        }
  }

  beginRestore(holder: string, key: string, undoVersion: number): void {
    this.#exec('INSERT OR REPLACE INTO workspace_restores VALUES (?, ?, ?, 0)', holder, key, undoVersion)
  }

  endRestore(holder: string): void {
    this.#exec('UPDATE workspace_restores SET is_done = 1 WHERE holder = ?', holder)
  }

  /** A version was deleted. */
  forget(number: number): void {
    this.#exec('DELETE FROM held_versions WHERE number = ?', number)
  }
}
