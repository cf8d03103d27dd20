import { readLines } from '../read-lines.ts'
import { MAX_LOG_LINE_CHARS } from './spec.ts'

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
    for await (const line of readLines(stream))
      if (line !== '') this.#write(formatDaemonLine(line, this.#now()))
  }

  #say(level: string, event: string, fields: SupervisorFields): void {
    this.#write(
      formatLine({ time: this.#now().toISOString(), level, event, ...fields, source: 'supervisor' }),
    )
  }
}

/** What a terminal could take for an order, or what hides text: C1 controls, line separators, direction marks. */
const UNSEEN = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** One line of JSON in which nothing but printable characters stands raw. */
export function formatLine(value: object): string {
  return `${JSON.stringify(value).replace(UNSEEN, escapeCharacter)}\n`
}

function parseObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    // Not JSON, such as the report of a crash: kept as a message.
    return undefined
  }
}

/**
 * A line that sandboxd wrote, as it is kept. What is no object, or too long to be one, becomes the message of a line of ours;
 * a line cannot pass for one of ours, because `source` is said last.
 */
export function formatDaemonLine(text: string, time: Date): string {
  const fields = text.length <= MAX_LOG_LINE_CHARS ? parseObject(text) : undefined
  if (fields !== undefined) return formatLine({ ...fields, source: 'sandboxd' })
  const isCut = text.length > MAX_LOG_LINE_CHARS
  return formatLine({
    time: time.toISOString(),
    level: 'info',
    event: 'output',
    message: text.slice(0, MAX_LOG_LINE_CHARS).toWellFormed(),
    ...(isCut && { cut: true }),
    source: 'sandboxd',
  })
}
