import { Buckets } from '../http/buckets.ts'
import type { Action } from './actions.ts'

/** Rows of one person that cost them nothing to cause: so many at once, then one every so often. */
const BURST = 60
const PER_SECOND = 0.1
const MAX_PEOPLE = 256

const READS: ReadonlySet<Action> = new Set(['output.read', 'logs.read'])

/**
 * Keeps anybody from pushing everything else out of an audit: being refused and reading are free, and an audit has room
 * for so many rows.
 */
export class Chatter {
  readonly #people = new Buckets({ perSecond: PER_SECOND, burst: BURST, max: MAX_PEOPLE })

  /** Whether a row is to be written. */
  admits(
    row: { readonly actor: string; readonly action: Action; readonly outcome: 'allowed' | 'refused' },
    nowMs: number,
  ): boolean {
    const isCheap = row.outcome === 'refused' || READS.has(row.action)
    return !isCheap || this.#people.take(row.actor, nowMs)
  }
}
