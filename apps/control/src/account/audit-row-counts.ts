import { AUDIT_CLASSES, type AuditClass } from '../audit/actions.ts'
import { numberOf, type Row, type Sql, textOf } from '../sql.ts'

export const ROW_COUNTS_SCHEMA: readonly string[] = [
  // Rows per group, so that they need not be counted.
  `CREATE TABLE audit_row_counts (
    class TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    rows INTEGER NOT NULL,
    PRIMARY KEY (class, actor, action, outcome)
  ) WITHOUT ROWID`,
]

/** Rows that are evicted together, oldest first. A row of class `summary` counts the rows evicted from another class. */
export interface RowGroup {
  readonly class: AuditClass | 'summary'
  readonly actor: string
  readonly action: string
  readonly outcome: string
}

interface GroupCount extends RowGroup {
  readonly rows: number
}

/**
 * How many rows to delete of each so that `surplus` rows go: those with the most rows are reduced to a common level, those
 * below it lose none.
 */
function levelDown<T extends { readonly rows: number }>(counts: readonly T[], surplus: number): readonly T[] {
  const largestFirst = counts.toSorted((a, b) => b.rows - a.rows)
  let left = surplus
  let level = largestFirst[0]?.rows ?? 0
  let count = 0
  for (const { rows } of largestFirst) {
    if ((level - rows) * count >= left) break
    left -= (level - rows) * count
    level = rows
    count += 1
  }
  level -= Math.ceil(left / Math.max(count, 1))
  let open = surplus
  return largestFirst.slice(0, count).map((counted) => {
    const taken = Math.min(open, counted.rows - level)
    open -= taken
    return { ...counted, rows: taken }
  })
}

function sumOf(counts: readonly { readonly rows: number }[]): number {
  return counts.reduce((sum, { rows }) => sum + rows, 0)
}

/** The actor with the most rows loses the most, and of its rows the most frequent ones: a flood evicts itself. */
function levelActors(counts: readonly GroupCount[], surplus: number): readonly GroupCount[] {
  const byActor = Map.groupBy(counts, ({ actor }) => actor)
  const actors = [...byActor.values()].map((groups) => ({ groups, rows: sumOf(groups) }))
  return levelDown(actors, surplus).flatMap(({ groups, rows }) => levelDown(groups, rows))
}

function tally(groups: readonly RowGroup[]): readonly GroupCount[] {
  const byKey = Map.groupBy(groups, (group) => JSON.stringify(keyOf(group)))
  return [...byKey.values()].flatMap(([first, ...more]) =>
    first === undefined ? [] : [{ ...first, rows: 1 + more.length }],
  )
}

function keyOf(group: RowGroup): [string, string, string, string] {
  return [group.class, group.actor, group.action, group.outcome]
}

function toGroupCount(row: Row): GroupCount {
  return {
    class: textOf(row, 'class') as RowGroup['class'],
    actor: textOf(row, 'actor'),
    action: textOf(row, 'action'),
    outcome: textOf(row, 'outcome'),
    rows: numberOf(row, 'rows'),
  }
}

/** Number of rows per group. Totals are kept in memory, so that all groups are read only when there are too many rows. */
export class RowCounts {
  readonly #sql: Sql
  /** Rows of each class; undefined: to be read. */
  #totals: Map<string, number> | undefined

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Counts an added row for each group given. */
  add(groups: readonly RowGroup[]): void {
    this.#change(tally(groups), 1, (group, rows) =>
      this.#sql.exec(
        `INSERT INTO audit_row_counts VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (class, actor, action, outcome) DO UPDATE SET rows = rows + excluded.rows`,
        ...keyOf(group),
        rows,
      ),
    )
  }

  /** Counts a deleted row for each group given. */
  remove(groups: readonly RowGroup[]): void {
    const where = 'WHERE class = ? AND actor = ? AND action = ? AND outcome = ?'
    this.#change(tally(groups), -1, (group, rows) => {
      this.#sql.exec(`UPDATE audit_row_counts SET rows = rows - ? ${where}`, rows, ...keyOf(group))
      this.#sql.exec(`DELETE FROM audit_row_counts ${where} AND rows <= 0`, ...keyOf(group))
    })
  }

  total(rowClass: RowGroup['class']): number {
    this.#totals ??= this.#readTotals()
    return this.#totals.get(rowClass) ?? 0
  }

  /** Rows to delete per group; `atOnce` of a class of the owner's or of the others', if there are more than `max`. */
  surplus(owner: string, max: Readonly<Record<AuditClass, number>>, atOnce: number): readonly GroupCount[] {
    return AUDIT_CLASSES.flatMap((rowClass) => {
      // Most accounts have fewer rows than either limit.
      const total = this.total(rowClass)
      if (total <= max[rowClass]) return []
      const own = this.#groups(rowClass, '=', owner)
      const ownRows = sumOf(own)
      return [
        ...(ownRows > max[rowClass] ? levelActors(own, atOnce) : []),
        ...(total - ownRows > max[rowClass] ? levelActors(this.#groups(rowClass, '<>', owner), atOnce) : []),
      ]
    })
  }

  #groups(rowClass: string, comparison: '=' | '<>', owner: string): readonly GroupCount[] {
    return this.#sql
      .exec(`SELECT * FROM audit_row_counts WHERE class = ? AND actor ${comparison} ?`, rowClass, owner)
      .toArray()
      .map(toGroupCount)
  }

  #change(counts: readonly GroupCount[], sign: 1 | -1, write: (group: RowGroup, rows: number) => void): void {
    const totals = this.#totals
    // Read again if a write fails.
    this.#totals = undefined
    for (const { rows, ...group } of counts) {
      write(group, rows)
      totals?.set(group.class, (totals.get(group.class) ?? 0) + sign * rows)
    }
    this.#totals = totals
  }

  #readTotals(): Map<string, number> {
    const sums = this.#sql.exec('SELECT class, SUM(rows) AS rows FROM audit_row_counts GROUP BY class')
    return new Map(sums.toArray().map((row) => [textOf(row, 'class'), numberOf(row, 'rows')]))
  }
}
