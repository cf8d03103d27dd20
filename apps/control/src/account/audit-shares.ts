import { numberOf, type Sql, textOf } from '../sql.ts'

/** Most rows of what the owner did. */
export const MAX_OWN_ROWS = 50_000
/** Most rows of what all others did together. */
export const MAX_OTHERS_ROWS = 50_000

/** What each has in the audit, so that nothing has to be counted; without a row they have nothing. */
export const AUDIT_SHARE_MIGRATIONS: readonly string[] = [
  'CREATE TABLE audit_shares (actor TEXT PRIMARY KEY, held INTEGER NOT NULL)',
  'INSERT INTO audit_shares SELECT actor, COUNT(*) FROM audit GROUP BY actor',
  'CREATE INDEX audit_by_actor ON audit (actor, seq)',
]

interface Share {
  readonly actor: string
  readonly held: number
}

/**
 * What is to be taken from whom so that `surplus` rows go: from those with most, down to a level that all of them have then.
 * Nobody below it loses anything.
 */
function levelDown(shares: readonly Share[], surplus: number): readonly Share[] {
  const largestFirst = shares.toSorted((a, b) => b.held - a.held)
  let left = surplus
  let level = largestFirst[0]?.held ?? 0
  let count = 0
  for (const { held } of largestFirst) {
    if ((level - held) * count >= left) break
    left -= (level - held) * count
    level = held
    count += 1
  }
  level -= Math.ceil(left / Math.max(count, 1))
  let open = surplus
  return largestFirst.slice(0, count).map(({ actor, held }) => {
    const taken = Math.min(open, held - level)
    open -= taken
    return { actor, held: taken }
  })
}

/** How many rows of an audit are whose. */
export class AuditShares {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Rows of these came, one for each time that an actor is named. */
  add(actors: readonly string[]): void {
    for (const [actor, count] of tally(actors))
      this.#sql.exec(
        'INSERT INTO audit_shares VALUES (?, ?) ON CONFLICT (actor) DO UPDATE SET held = held + excluded.held',
        actor,
        count,
      )
  }

  /** Rows of these went. */
  remove(actors: readonly string[]): void {
    for (const [actor, count] of tally(actors)) {
      this.#sql.exec('UPDATE audit_shares SET held = held - ? WHERE actor = ?', count, actor)
      this.#sql.exec('DELETE FROM audit_shares WHERE actor = ? AND held <= 0', actor)
    }
  }

  /** Whose rows are too many, and how many of them; at most `atOnce` of the owner's and of the others' each. */
  surplus(owner: string, atOnce: number): readonly Share[] {
    const shares = this.#sql.exec('SELECT actor, held FROM audit_shares').toArray()
    const all = shares.map((row) => ({ actor: textOf(row, 'actor'), held: numberOf(row, 'held') }))
    const tooMany = (of: readonly Share[], max: number): readonly Share[] => {
      const held = of.reduce((sum, share) => sum + share.held, 0)
      return held <= max ? [] : levelDown(of, Math.min(held - max, atOnce))
    }
    const [own, others] = [
      all.filter(({ actor }) => actor === owner),
      all.filter(({ actor }) => actor !== owner),
    ]
    return [...tooMany(own, MAX_OWN_ROWS), ...tooMany(others, MAX_OTHERS_ROWS)]
  }
}

function tally(actors: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const actor of actors) counts.set(actor, (counts.get(actor) ?? 0) + 1)
  return counts
}
