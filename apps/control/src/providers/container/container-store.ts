import { networkSchema, type NetworkSpec } from '@sandwire/internal-api'
import type { StopReason } from '@sandwire/protocol'
import { type Exec, numberOf, textOf } from '../../sql.ts'

export const CONTAINER_SCHEMA: readonly string[] = [
  `CREATE TABLE container (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    network TEXT NOT NULL,
    end_reason TEXT
  )`,
  'CREATE TABLE container_log (id INTEGER PRIMARY KEY, line TEXT NOT NULL)',
]

/** Network of a container whose settings cannot be read. */
const CLOSED: NetworkSpec = { policy: 'none', allow: [] }

/** Lines of the log; the oldest are deleted first. */
const MAX_LINES = 200

/**
 * Why a container ended, as the host reports it too. `requested`: a user or control stopped it. `disconnect_failed`: it was ended
 * to close its connections. `lost`: the engine reports no reason. `cold`: the provider of a sprite ended its processes.
 */
export type EndReason = StopReason | 'disconnect_failed' | 'lost' | 'cold' | `exit_${number}`

/** One start of the container. */
export interface ContainerRun {
  readonly epoch: string
  readonly startedMs: number
  readonly network: NetworkSpec
  /** Absent while it runs. */
  readonly endReason?: EndReason
}

/** What an object stores about its container; the runtime forgets it when the object is evicted. */
export class ContainerStore {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  /** The last start; undefined when there was none. */
  read(): ContainerRun | undefined {
    const [row] = this.#exec('SELECT * FROM container')
    if (row === undefined) return undefined
    const run = {
      epoch: textOf(row, 'epoch'),
      startedMs: numberOf(row, 'started_ms'),
      network: networkSchema.decode(JSON.parse(textOf(row, 'network'))) ?? CLOSED,
    }
    return row['end_reason'] === null ? run : { ...run, endReason: textOf(row, 'end_reason') as EndReason }
  }

  begin({ epoch, startedMs, network }: ContainerRun): void {
    this.#exec(
      'INSERT OR REPLACE INTO container (one, epoch, started_ms, network, end_reason) VALUES (1, ?, ?, ?, NULL)',
      epoch,
      startedMs,
      JSON.stringify(network),
    )
  }

  /** Stores why a start ended; the first reason counts, and a later start is not affected. */
  end(epoch: string, reason: EndReason): void {
    this.#exec('UPDATE container SET end_reason = ? WHERE epoch = ? AND end_reason IS NULL', reason, epoch)
  }

  clear(): void {
    this.#exec('DELETE FROM container')
    this.#exec('DELETE FROM container_log')
  }

  addLine(line: string): void {
    this.#exec('INSERT INTO container_log (line) VALUES (?)', line)
    this.#exec('DELETE FROM container_log WHERE id <= (SELECT MAX(id) FROM container_log) - ?', MAX_LINES)
  }

  /** The last lines that fit. */
  lines(maxBytes: number): string {
    const kept: string[] = []
    let bytes = 0
    for (const row of this.#exec('SELECT line FROM container_log ORDER BY id DESC')) {
      const line = `${textOf(row, 'line')}\n`
      bytes += line.length
      if (bytes > maxBytes) break
      kept.unshift(line)
    }
    return kept.join('')
  }
}
