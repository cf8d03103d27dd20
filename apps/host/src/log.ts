import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'

/** Allowed fields of a log line; a closed list, so that no secret is logged. */
export interface LogFields {
  readonly request_id?: string
  readonly sandbox?: string
  readonly code?: string
  readonly message?: string
  readonly method?: string
  readonly route?: string
  readonly status?: number
  readonly duration_ms?: number
  readonly pid?: number
  readonly port?: number
  readonly sandboxes?: number
  readonly connections?: number
  readonly closed?: number
  readonly per_address?: number
  readonly files?: number
  readonly isolation?: string
  readonly disk?: string
  readonly free_bytes?: number
  readonly reserve_bytes?: number
  /** Cause of an error, for the operator; never sent to a peer. */
  readonly cause?: string
}

export interface Log {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

/** Writes JSON lines. */
export function createLog(write: (line: string) => void, now: () => Date): Log {
  const at =
    (level: string) =>
    (event: string, fields: LogFields = {}): void =>
      write(`${JSON.stringify({ time: now().toISOString(), level, source: 'host', event, ...fields })}\n`)
  return { info: at('info'), warn: at('warn'), error: at('error') }
}

/** The message of a caught value, for logs and the operator. */
export function describeCause(cause: unknown): string {
  if (cause instanceof Error) return cause.message
  return typeof cause === 'string' ? cause : 'unknown'
}

/** A log and its predecessor take at most twice this. */
const MAX_LOG_BYTES = 8 * 1024 * 1024

/** A log file with rotation: when full it becomes `FILE.1`. */
export class LogFile {
  readonly #file: string
  readonly #maxBytes: number
  #fd: number
  #bytes: number

  constructor(file: string, maxBytes: number = MAX_LOG_BYTES) {
    this.#file = file
    this.#maxBytes = maxBytes
    this.#fd = openSync(file, 'a', 0o600)
    this.#bytes = fstatSync(this.#fd).size
  }

  write(line: string): void {
    const bytes = Buffer.from(line)
    if (this.#bytes + bytes.length > this.#maxBytes) this.#rotate()
    this.#bytes += writeSync(this.#fd, bytes)
  }

  #rotate(): void {
    closeSync(this.#fd)
    renameSync(this.#file, `${this.#file}.1`)
    this.#fd = openSync(this.#file, 'a', 0o600)
    this.#bytes = 0
  }
}
