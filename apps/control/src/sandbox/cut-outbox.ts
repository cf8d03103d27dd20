import { isIssuedBefore } from '../auth/identity.ts'
import { numberOf, type Row, textOf } from '../sql.ts'

/** Appended to the migrations of a sandbox's store. */
export const CUT_MIGRATIONS: readonly string[] = [
  `CREATE TABLE cuts (
    number INTEGER PRIMARY KEY,
    selector TEXT NOT NULL UNIQUE,
    epoch TEXT,
    since_ms INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    next_ms INTEGER NOT NULL,
    is_severed INTEGER NOT NULL
  )`,
  'CREATE TABLE ended_logins (login TEXT PRIMARY KEY, until_ms INTEGER NOT NULL)',
]

/** For the end of the migrations. */
export const ENDED_LOGIN_MIGRATION = 'ALTER TABLE ended_logins ADD COLUMN ended_ms INTEGER NOT NULL DEFAULT 0'

/** Unconfirmed for this long, a cut is made where the sandbox has no say. */
export const SEVER_AFTER_MS = 3_000
/** Attempts after which it is too, whatever a clock that was set says. */
const SEVER_AFTER_TRIES = 5
/** Before the second attempt; it doubles. */
const FIRST_RETRY_MS = 250
const MAX_RETRY_MS = 30_000
/** Cuts that wait. Past it the oldest are dropped that were severed: whom they name is gone and is let in nowhere. */
export const MAX_CUTS = 256
/** How long a sign-in that ended is remembered: calls that were checked before it ended arrive sooner. */
const ENDED_LOGIN_MS = 10 * 60 * 1000
const MAX_ENDED_LOGINS = 1_000

/** Whose connections end: those that match everything given. */
export interface Selector {
  readonly identity?: string
  readonly session?: string
  readonly grant?: string
  readonly login?: string
}

/** A cut that sandboxd has not confirmed. */
export interface Cut {
  readonly number: number
  readonly selector: Selector
  /** Start of the sandbox that it is about; null: whichever runs. */
  readonly epoch: string | null
  readonly sinceMs: number
  readonly tries: number
  readonly nextMs: number
  readonly isSevered: boolean
}

/** Whether it is time to cut every connection into the sandbox. A clock that went back counts as time that passed. */
export function isSeverDue({ sinceMs, tries, isSevered }: Cut, nowMs: number): boolean {
  if (isSevered) return false
  return nowMs >= sinceMs + SEVER_AFTER_MS || nowMs < sinceMs || tries >= SEVER_AFTER_TRIES
}

export function retryMs(tries: number): number {
  return Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.max(0, tries - 1))
}

/** How long until something is to be done about a cut; never longer than its back-off, whatever was done to the clock. */
export function dueInMs(cut: Cut, nowMs: number): number {
  if (cut.tries === 0) return 0
  const severMs = cut.isSevered ? Number.POSITIVE_INFINITY : cut.sinceMs + SEVER_AFTER_MS
  return Math.max(0, Math.min(cut.nextMs - nowMs, severMs - nowMs, retryMs(cut.tries)))
}

/** Runs a query, or nothing while there is no sandbox. */
type Exec = (query: string, ...bindings: (string | number | null)[]) => readonly Row[]

function toCut(row: Row): Cut {
  return {
    number: numberOf(row, 'number'),
    selector: JSON.parse(textOf(row, 'selector')) as Selector,
    epoch: row['epoch'] === null ? null : textOf(row, 'epoch'),
    sinceMs: numberOf(row, 'since_ms'),
    tries: numberOf(row, 'tries'),
    nextMs: numberOf(row, 'next_ms'),
    isSevered: numberOf(row, 'is_severed') === 1,
  }
}

/** One spelling for each selector. */
function spell({ identity, session, grant, login }: Selector): string {
  return JSON.stringify({ identity, session, grant, login })
}

/** Cuts until they are known to be made, and the sign-ins that ended lately. */
export class CutOutbox {
  readonly #exec: Exec
  #last = 0

  constructor(exec: Exec) {
    this.#exec = exec
  }

  /**
   * Writes a cut down; one that waits already begins anew, under a new number. One that was not severed keeps its time to be:
   * it would else be put off for as long as it is asked for again.
   */
  add(selector: Selector, epoch: string | null, nowMs: number): void {
    this.#exec(
      `INSERT INTO cuts (number, selector, epoch, since_ms, tries, next_ms, is_severed) VALUES (?, ?, ?, ?, 0, ?, 0)
       ON CONFLICT (selector) DO UPDATE SET number = excluded.number, epoch = excluded.epoch,
         since_ms = IIF(is_severed = 0 AND epoch IS excluded.epoch, since_ms, excluded.since_ms),
         tries = 0, next_ms = excluded.next_ms, is_severed = 0`,
      this.#mintNumber(nowMs),
      spell(selector),
      epoch,
      nowMs,
      nowMs,
    )
    this.#exec(
      `DELETE FROM cuts WHERE is_severed = 1
       AND number NOT IN (SELECT number FROM cuts ORDER BY number DESC LIMIT ?)`,
      MAX_CUTS,
    )
  }

  /** Never one that a request under way has in mind; in order. */
  #mintNumber(nowMs: number): number {
    const [row] = this.#exec('SELECT COALESCE(MAX(number), 0) AS last FROM cuts')
    const stored = row === undefined ? 0 : numberOf(row, 'last')
    this.#last = Math.max(nowMs * 1000, this.#last + 1, stored + 1)
    return this.#last
  }

  all(): readonly Cut[] {
    return this.#exec('SELECT * FROM cuts ORDER BY number').map(toCut)
  }

  find(number: number): Cut | undefined {
    const [row] = this.#exec('SELECT * FROM cuts WHERE number = ?', number)
    return row === undefined ? undefined : toCut(row)
  }

  noteAttempt({ number, tries }: Cut, nowMs: number): void {
    this.#exec(
      'UPDATE cuts SET tries = ?, next_ms = ? WHERE number = ?',
      tries + 1,
      nowMs + retryMs(tries + 1),
      number,
    )
  }

  /** Every connection was cut that was there when `number` was the newest cut. */
  noteSevered(number: number): void {
    this.#exec('UPDATE cuts SET is_severed = 1 WHERE number <= ?', number)
  }

  remove(number: number): void {
    this.#exec('DELETE FROM cuts WHERE number = ?', number)
  }

  /** When something is to be done next; undefined when nothing waits. */
  nextMs(nowMs: number): number | undefined {
    const cuts = this.all()
    return cuts.length === 0 ? undefined : nowMs + Math.min(...cuts.map((cut) => dueInMs(cut, nowMs)))
  }

  endLogin(login: string, endedMs: number, nowMs: number): void {
    this.#exec('DELETE FROM ended_logins WHERE until_ms <= ?', nowMs)
    this.#exec(
      `INSERT INTO ended_logins (login, until_ms, ended_ms) VALUES (?, ?, ?)
       ON CONFLICT (login) DO UPDATE SET until_ms = excluded.until_ms, ended_ms = MAX(ended_ms, excluded.ended_ms)`,
      login,
      nowMs + ENDED_LOGIN_MS,
      endedMs,
    )
    this.#exec(
      'DELETE FROM ended_logins WHERE login NOT IN (SELECT login FROM ended_logins ORDER BY until_ms DESC LIMIT ?)',
      MAX_ENDED_LOGINS,
    )
  }

  /** Whether a credential of this sign-in comes from before its end. One that does not say when it was issued does for a while. */
  hasEnded(login: string, issuedMs: number | undefined, nowMs: number): boolean {
    const [row] = this.#exec('SELECT until_ms, ended_ms FROM ended_logins WHERE login = ?', login)
    if (row === undefined || !isIssuedBefore(numberOf(row, 'ended_ms'), issuedMs)) return false
    return issuedMs !== undefined || numberOf(row, 'until_ms') > nowMs
  }
}
