/** Longest text that is kept of a line that is not control's own JSON. */
const MAX_MESSAGE_CHARS = 500

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    // Not JSON: kept as text.
    return undefined
  }
}

/** The values that workerd adds to a failure, such as `; url = …` or ` [1 == 2]`: they come from whoever asked. */
const VALUES = /(; [^;=]* = | \[).*$/

/** First line of a text, cut, without values: what follows in workerd's errors are addresses in its own program. */
function firstLine(text: string): string {
  return (text.split('\n')[0] ?? '').replace(VALUES, '').slice(0, MAX_MESSAGE_CHARS)
}

/**
 * Turns a line that workerd prints into one of the host's log. Control logs JSON objects, whose fields it chose by its own allowlist;
 * they pass as they are. Everything else is cut to one line without values.
 */
export function translateLine(line: string, now: Date): string {
  const time = now.toISOString()
  const outer = parse(line)
  const message = typeof outer?.['message'] === 'string' ? outer['message'] : line
  const level = outer?.['level'] === 'error' ? 'error' : outer?.['level'] === 'warn' ? 'warn' : 'info'
  const inner = parse(message)
  const fields = inner ?? { event: 'workerd', message: firstLine(message) }
  return `${JSON.stringify({ time, level, source: 'control', ...fields })}\n`
}
