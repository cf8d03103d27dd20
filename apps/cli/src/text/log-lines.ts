import { printable } from './printable.ts'

/** Fields that are printed first, without their names. */
const LEADING_FIELDS = new Set(['time', 'level', 'event'])

/** Complete lines of a log. */
export function splitLines(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '')
}

/** The lines of `after` that `before` does not have, where both are the end of one growing log. */
export function unseenLines(before: readonly string[], after: readonly string[]): readonly string[] {
  for (let from = Math.max(0, before.length - after.length); from < before.length; from++) {
    const common = before.length - from
    if (before.slice(from).every((line, index) => line === after[index])) return after.slice(common)
  }
  return after
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** Formats a JSON line: time, level, event, and the rest as name=value. */
export function formatLogLine(line: string): string {
  let fields: unknown
  try {
    fields = JSON.parse(line)
  } catch {
    // Not JSON; printed as is.
    return printable(line)
  }
  if (typeof fields !== 'object' || fields === null) return printable(line)
  const entries = new Map<string, unknown>(Object.entries(fields))
  const leading = [...LEADING_FIELDS].flatMap((name) =>
    entries.has(name) ? [formatValue(entries.get(name))] : [],
  )
  const others = [...entries].filter(([name]) => !LEADING_FIELDS.has(name))
  return printable([...leading, ...others.map(([name, value]) => `${name}=${formatValue(value)}`)].join(' '))
}
