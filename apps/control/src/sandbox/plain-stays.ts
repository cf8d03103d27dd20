import { numberOf, type Row, textOf } from '../sql.ts'

/** For the end of the migrations. */
export const PLAIN_STAYS_MIGRATION = `CREATE TABLE plain_stays (
    session TEXT PRIMARY KEY,
    checked_ms INTEGER NOT NULL,
    stay TEXT NOT NULL
  )`

/** Plain connections that are remembered; looks forget those that have ended, so that this is far more than there can be. */
const MAX_STAYS = 10_000

/** What a plain connection's right to stay hangs on. It has the session that it started to itself, and ends with it. */
export interface PlainStay {
  readonly session: string
  readonly identity: string
  /** Grant that it came by; absent: it is the owner's. */
  readonly grant?: string
  readonly login?: string
  /** The very token, where `login` stands for others too. */
  readonly token?: string
  readonly issuedMs?: number
  /** Its sign-in is one that the account keeps, and so may be looked for there; otherwise a token says all there is. */
  readonly isKept: boolean
}

/** One of them, and when its right was last known to hold. */
export interface CheckedStay extends PlainStay {
  readonly checkedMs: number
}

/** Whether there is anything about a connection that can be taken away while it lasts. */
export function canEnd({ login, grant }: Pick<PlainStay, 'login' | 'grant'>): boolean {
  return login !== undefined || grant !== undefined
}

/** Whether a right has to be looked at now, so that it is not older than `mostMs` at the next look. A clock that went back asks too. */
export function isDue(
  { checkedMs }: Pick<CheckedStay, 'checkedMs'>,
  { nowMs, mostMs, lookMs }: { readonly nowMs: number; readonly mostMs: number; readonly lookMs: number },
): boolean {
  // Twice, since a look may come late.
  return nowMs + 2 * lookMs >= checkedMs + mostMs || nowMs < checkedMs
}

/** Runs a query, or nothing while there is no sandbox. */
type Exec = (query: string, ...bindings: (string | number | null)[]) => readonly Row[]

/** The plain connections of a sandbox whose rights can end. */
export class PlainStays {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  get isFull(): boolean {
    const [row] = this.#exec('SELECT COUNT(*) AS count FROM plain_stays')
    return row !== undefined && numberOf(row, 'count') >= MAX_STAYS
  }

  add(stay: PlainStay, nowMs: number): void {
    this.#exec(
      'INSERT OR REPLACE INTO plain_stays VALUES (?, ?, ?)',
      stay.session,
      nowMs,
      JSON.stringify(stay),
    )
  }

  all(): readonly CheckedStay[] {
    return this.#exec('SELECT stay, checked_ms FROM plain_stays ORDER BY checked_ms').map((row) => ({
      ...(JSON.parse(textOf(row, 'stay')) as PlainStay),
      checkedMs: numberOf(row, 'checked_ms'),
    }))
  }

  noteChecked(session: string, nowMs: number): void {
    this.#exec('UPDATE plain_stays SET checked_ms = ? WHERE session = ?', nowMs, session)
  }

  remove(session: string): void {
    this.#exec('DELETE FROM plain_stays WHERE session = ?', session)
  }
}
