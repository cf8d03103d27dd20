import { Buckets } from '../http/buckets.ts'
import { type Action, classOf } from './actions.ts'

const MAX_ACTORS = 256
/** Rows per actor for refused requests and reads, which cost the actor nothing: a burst, then one every ten seconds. */
const CHEAP = { perSecond: 0.1, burst: 60, max: MAX_ACTORS }
/** Rows per actor for file changes, and for everything in another account's sandbox: more than a user causes, less than a loop. */
const FREQUENT = { perSecond: 1, burst: 300, max: MAX_ACTORS }

const READS: ReadonlySet<Action> = new Set(['output.read', 'logs.read'])
/** Actions that programs perform by the thousand; they would bury all other rows. */
const FILE_CHANGES: ReadonlySet<Action> = new Set(['file.write', 'file.delete', 'file.move', 'git.change'])

/** Limits how fast one actor can add rows to an audit. Which rows are kept there is up to the account's limits. */
export class AuditSampling {
  // By class, so that a flood of other rows takes nothing from those that are relevant to security.
  readonly #cheap = { security: new Buckets(CHEAP), activity: new Buckets(CHEAP) }
  readonly #frequent = { security: new Buckets(FREQUENT), activity: new Buckets(FREQUENT) }

  /** True when the row should be written. `isOwner`: the actor owns the audit. */
  admits(
    row: {
      readonly actor: string
      readonly action: Action
      readonly outcome: 'allowed' | 'refused'
      readonly code?: string
    },
    isOwner: boolean,
    nowMs: number,
  ): boolean {
    const rowClass = classOf(row.action, row.code)
    if (rowClass === 'gap') return true
    if (row.outcome === 'refused' || READS.has(row.action))
      return this.#cheap[rowClass].take(row.actor, nowMs)
    const isUnlimited = isOwner && !FILE_CHANGES.has(row.action)
    return isUnlimited || this.#frequent[rowClass].take(row.actor, nowMs)
  }
}
