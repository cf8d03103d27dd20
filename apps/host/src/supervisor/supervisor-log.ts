import { readLines } from '../read-lines.ts'
import { formatLine, keepLine } from './log-line.ts'

/** Fields of the supervisor's own lines. Nothing else is logged, so no secret can be. */
export interface SupervisorFields {
  readonly request_id?: string
  readonly route?: string
  readonly status?: number
  readonly pid?: number
  readonly slot?: number
  readonly port?: number
  readonly reason?: string
  readonly isolation?: string
  readonly duration_ms?: number
  readonly host?: string
  /** Why something failed, for whoever runs the machine. */
  readonly cause?: string
}

/** The log of one sandbox: what its supervisor and its sandboxd say. */
export class SupervisorLog {
  readonly #write: (lines: string) => void
  readonly #now: () => Date

  constructor(write: (lines: string) => void, now: () => Date) {
    this.#write = write
    this.#now = now
  }

  info(event: string, fields: SupervisorFields = {}): void {
    this.#say('info', event, fields)
  }

  warn(event: string, fields: SupervisorFields = {}): void {
    this.#say('warn', event, fields)
  }

  /** Keeps every line of a stream until it ends. */
  async follow(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const line of readLines(stream)) if (line !== '') this.#write(keepLine(line, this.#now()))
  }

  #say(level: string, event: string, fields: SupervisorFields): void {
    this.#write(
      formatLine({ time: this.#now().toISOString(), level, event, ...fields, source: 'supervisor' }),
    )
  }
}
