/** Fields a log line may carry. Nothing a client sends is logged but what is listed here. */
export interface LogFields {
  readonly session?: string
  readonly request_id?: string
  readonly code?: string
  readonly message?: string
  readonly method?: string
  readonly route?: string
  readonly status?: number
  readonly pid?: number
  readonly exit?: number | null
  readonly signal?: string | null
  readonly sessions?: number
  readonly mode?: string
}

export interface Log {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

/** Writes one JSON object a line. */
export function createLog(write: (line: string) => void, now: () => Date): Log {
  const at =
    (level: string) =>
    (event: string, fields: LogFields = {}): void =>
      write(`${JSON.stringify({ time: now().toISOString(), level, event, ...fields })}\n`)
  return { info: at('info'), warn: at('warn'), error: at('error') }
}
