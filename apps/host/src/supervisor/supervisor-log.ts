import { readLines } from '../read-lines.ts'
import { MAX_LOG_LINE_CHARS } from './spec.ts'

/** Allowed fields of the supervisor's log lines; a closed list, so that no secret is logged. */
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
  /** Cause of a failure, for the operator. */
  readonly cause?: string
}

/** The log of one sandbox, written by its supervisor and sandboxd. */
export class SupervisorLog {
  readonly #write: (lines: string) => void
  readonly #now: () => Date

  constructor(write: (lines: string) => void, now: () => Date) {
    this.#write = write
    this.#now = now
  }

  info(event: string, fields: SupervisorFields = {}): void {
    this.#log('info', event, fields)
  }

  warn(event: string, fields: SupervisorFields = {}): void {
    this.#log('warn', event, fields)
  }

  /** Logs every line of a stream. */
  async follow(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const line of readLines(stream))
      if (line !== '') this.#write(formatDaemonLine(line, this.#now()))
  }

  #log(level: string, event: string, fields: SupervisorFields): void {
    this.#write(
      formatLine({ time: this.#now().toISOString(), level, event, ...fields, source: 'supervisor' }),
    )
  }
}

/** Characters that a terminal could interpret or that hide text: C1 controls, line separators, direction marks. */
const UNSEEN = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** A JSON line with all non-printable characters escaped. */
export function formatLine(value: object): string {
  return `${JSON.stringify(value).replace(UNSEEN, escapeCharacter)}\n`
}

function parseObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    // Not JSON, for example a crash report: logged as a message.
    return undefined
  }
}

/**
 * Formats a line of sandboxd's output. Text that is not a JSON object, or too long, becomes a message. `source` is written last,
 * so that no line can pass for the supervisor's.
 */
export function formatDaemonLine(text: string, time: Date): string {
  const fields = text.length <= MAX_LOG_LINE_CHARS ? parseObject(text) : undefined
  if (fields !== undefined) return formatLine({ ...fields, source: 'sandboxd' })
  const isTruncated = text.length > MAX_LOG_LINE_CHARS
  return formatLine({
    time: time.toISOString(),
    level: 'info',
    event: 'output',
    message: text.slice(0, MAX_LOG_LINE_CHARS).toWellFormed(),
    ...(isTruncated && { cut: true }),
    source: 'sandboxd',
  })
}
