import { printable } from './printable.ts'

/** Fields of a log line that have a place of their own. */
const PLACED = new Set(['time', 'level', 'event'])

/** Complete lines of a log. */
export function splitLines(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '')
}

/** The lines of `after` that `before` does not have, where both are the end of one growing log. */
export function newLines(before: readonly string[], after: readonly string[]): readonly string[] {
  for (let from = Math.max(0, before.length - after.length); from < before.length; from++) {
    const common = before.length - from
    if (before.slice(from).every((line, index) => line === after[index])) return after.slice(common)
  }
  return after
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** A JSON line as people read it: time, level, event, and the rest as name=value. */
export function formatLogLine(line: string): string {
  let fields: unknown
  try {
    fields = JSON.parse(line)
  } catch {
    // Something else found its way into the log; it is shown as it is.
    return printable(line)
  }
  if (typeof fields !== 'object' || fields === null) return printable(line)
  const entries = new Map<string, unknown>(Object.entries(fields))
  const placed = [...PLACED].flatMap((name) => (entries.has(name) ? [formatValue(entries.get(name))] : []))
  const others = [...entries].filter(([name]) => !PLACED.has(name))
  return printable([...placed, ...others.map(([name, value]) => `${name}=${formatValue(value)}`)].join(' '))
}
