/** Longest value of a field. */
const MAX_TEXT_CHARS = 500

/** The fields of a log line. No other field is ever written. */
export interface LogFields {
  readonly session?: string
  readonly run?: string
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

const ALLOWED: Readonly<Record<keyof LogFields, true>> = {
  session: true,
  run: true,
  request_id: true,
  code: true,
  message: true,
  method: true,
  route: true,
  status: true,
  pid: true,
  exit: true,
  signal: true,
  sessions: true,
  mode: true,
}

export interface Log {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

/** Keeps listed fields with plain values, because the type checker does not see what was spread into an object. */
function redact(fields: LogFields): Record<string, string | number | null> {
  const kept: Record<string, string | number | null> = {}
  const entries: [string, unknown][] = Object.entries(fields)
  for (const [name, value] of entries) {
    if (!Object.hasOwn(ALLOWED, name)) continue
    if (typeof value === 'string') kept[name] = value.slice(0, MAX_TEXT_CHARS)
    else if (typeof value === 'number' || value === null) kept[name] = value
  }
  return kept
}

/** Writes one JSON object per line. */
export function createLog(write: (line: string) => void, now: () => Date): Log {
  const at =
    (level: string) =>
    (event: string, fields: LogFields = {}): void =>
      write(`${JSON.stringify({ time: now().toISOString(), level, event, ...redact(fields) })}\n`)
  return { info: at('info'), warn: at('warn'), error: at('error') }
}
