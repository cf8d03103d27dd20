/** The fields of a log line. Nothing else is logged, so no credential, URL or user name can be. */
export interface LogFields {
  readonly request_id?: string
  readonly route?: string
  readonly method?: string
  readonly status?: number
  readonly code?: string
  readonly duration_ms?: number
  readonly sandbox?: string
  readonly session?: string
  readonly run?: string
  readonly state?: string
  readonly attempt?: number
  /** Id of the command template that was started. */
  readonly template?: string
  /** Internal cause; never sent to a client. */
  readonly cause?: string
}

export interface Log {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

const FIELDS: readonly (keyof LogFields)[] = [
  'request_id',
  'route',
  'method',
  'status',
  'code',
  'duration_ms',
  'sandbox',
  'session',
  'run',
  'state',
  'attempt',
  'template',
  'cause',
]
/** Longest text in a field. */
const MAX_FIELD_CHARS = 300

function clean(value: string | number): string | number {
  return typeof value === 'string' ? value.replace(/\p{C}+/gu, ' ').slice(0, MAX_FIELD_CHARS) : value
}

/** Writes one JSON object per line, with the listed fields only. */
export function createLog(write: (line: string) => void, nowMs: () => number): Log {
  const at =
    (level: string) =>
    (event: string, fields: LogFields = {}): void => {
      const line: Record<string, string | number> = {
        time: new Date(nowMs()).toISOString(),
        level,
        source: 'control',
        event,
      }
      for (const name of FIELDS) {
        const value = fields[name]
        if (value !== undefined) line[name] = clean(value)
      }
      write(JSON.stringify(line))
    }
  return { info: at('info'), warn: at('warn'), error: at('error') }
}
