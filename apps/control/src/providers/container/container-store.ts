import { networkShape, type NetworkSpec } from '@sandwire/internal-api'
import { numberOf, type Row, textOf } from '../../sql.ts'

export const CONTAINER_MIGRATIONS: readonly string[] = [
  `CREATE TABLE container (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    end TEXT
  )`,
  'CREATE TABLE container_events (id INTEGER PRIMARY KEY, line TEXT NOT NULL)',
  `ALTER TABLE container ADD COLUMN network TEXT NOT NULL DEFAULT '{"policy":"none","allow":[]}'`,
]

/** What one reaches whose network is not known. */
const CLOSED: NetworkSpec = { policy: 'none', allow: [] }

/** Events kept for the log; the oldest go first. */
const MAX_EVENTS = 200

/** A start of the container, and how it ended once it has. */
export interface ContainerRun {
  readonly epoch: string
  readonly startedMs: number
  readonly network: NetworkSpec
  /** Empty when it was asked to. */
  readonly end?: string
}

/** What an object remembers of its container, which does not remember it. */
export class ContainerStore {
  readonly #exec: (query: string, ...bindings: (string | number | null)[]) => readonly Row[]

  constructor(exec: (query: string, ...bindings: (string | number | null)[]) => readonly Row[]) {
    this.#exec = exec
  }

  /** The last start; undefined when there was none. */
  read(): ContainerRun | undefined {
    const [row] = this.#exec('SELECT * FROM container')
    if (row === undefined) return undefined
    const run = {
      epoch: textOf(row, 'epoch'),
      startedMs: numberOf(row, 'started_ms'),
      network: networkShape.decode(JSON.parse(textOf(row, 'network'))) ?? CLOSED,
    }
    return row['end'] === null ? run : { ...run, end: textOf(row, 'end') }
  }

  begin({ epoch, startedMs, network }: ContainerRun): void {
    this.#exec(
      'INSERT OR REPLACE INTO container (one, epoch, started_ms, network, end) VALUES (1, ?, ?, ?, NULL)',
      epoch,
      startedMs,
      JSON.stringify(network),
    )
  }

  /** Notes how a start ended; a later start is not touched, and the first word counts. */
  end(epoch: string, end: string): void {
    this.#exec('UPDATE container SET end = ? WHERE epoch = ? AND end IS NULL', end, epoch)
  }

  clear(): void {
    this.#exec('DELETE FROM container')
    this.#exec('DELETE FROM container_events')
  }

  /** Adds a line to the log. */
  note(line: string): void {
    this.#exec('INSERT INTO container_events (line) VALUES (?)', line)
    this.#exec(
      'DELETE FROM container_events WHERE id <= (SELECT MAX(id) FROM container_events) - ?',
      MAX_EVENTS,
    )
  }

  /** The last lines that fit. */
  lines(maxBytes: number): string {
    const kept: string[] = []
    let bytes = 0
    for (const row of this.#exec('SELECT line FROM container_events ORDER BY id DESC')) {
      const line = `${textOf(row, 'line')}\n`
      bytes += line.length
      if (bytes > maxBytes) break
      kept.unshift(line)
    }
    return kept.join('')
  }
}
