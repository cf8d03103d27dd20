import { Buckets } from '../http/buckets.ts'
import type { Action } from './actions.ts'

const MAX_PEOPLE = 256
/** Rows of one person that cost them nothing to cause: so many at once, then one every so often. */
const FREE = { perSecond: 0.1, burst: 60, max: MAX_PEOPLE }
/** Rows of what one person does in a sandbox of somebody else, or to files: more than hands do, less than a loop. */
const OF_OTHERS = { perSecond: 1, burst: 300, max: MAX_PEOPLE }

const READS: ReadonlySet<Action> = new Set(['output.read', 'logs.read'])
/** What programs do by the thousand: its owner too could lose sight of everything else among such rows. */
const PLENTIFUL: ReadonlySet<Action> = new Set(['file.write', 'file.delete', 'file.move', 'git.change'])

/** Keeps anybody from filling an audit as fast as requests can be made; whose rows stay is for the account to see to. */
export class Chatter {
  readonly #free = new Buckets(FREE)
  readonly #ofOthers = new Buckets(OF_OTHERS)

  /** Whether a row is to be written. `isOwner`: of the audit that it is for. */
  admits(
    row: { readonly actor: string; readonly action: Action; readonly outcome: 'allowed' | 'refused' },
    isOwner: boolean,
    nowMs: number,
  ): boolean {
    const isFree = row.outcome === 'refused' || READS.has(row.action)
    if (isFree) return this.#free.take(row.actor, nowMs)
    const isRare = isOwner && !PLENTIFUL.has(row.action)
    return isRare || this.#ofOthers.take(row.actor, nowMs)
  }
}
