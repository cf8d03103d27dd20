type Fields = Readonly<Record<string, unknown>>

/** Leading words of a workerd message, up to a colon; too short to be a credential. */
const CLASS = /^[A-Za-z]{1,16}(?: [A-Za-z]{1,16}){0,3}(?=: )/
/** Class of all other messages. */
const OTHER = 'other'
/** Most classes that are counted; workerd has a handful. */
const MAX_CLASSES = 50

function parse(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    // Not JSON: not from control.
    return undefined
  }
}

/** A line that control wrote; its fields are from control's own allowlist. */
function findOwnLine(message: string): Fields | undefined {
  const found = parse(message)
  return found?.['source'] === 'control' && typeof found['event'] === 'string' ? found : undefined
}

function messageOf(line: string): { readonly message: string; readonly level: string } {
  const outer = parse(line)
  const { message = line, level } = outer ?? {}
  const isKnown = level === 'error' || level === 'warn'
  return { message: typeof message === 'string' ? message : '', level: isKnown ? level : 'info' }
}

/** Class of a workerd message. The rest of the message is dropped, because it may contain client input. */
export function classify(line: string): string {
  return CLASS.exec(messageOf(line).message)?.[0] ?? OTHER
}

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count))
}

/**
 * Converts workerd's output to lines of the host's log. Control's own lines pass unchanged. Of others, only the class and its
 * count are logged, with decreasing frequency, because any client can cause them.
 */
export class ControlLog {
  readonly #counts = new Map<string, number>()

  /** The log line; undefined when nothing is to be logged. */
  translate(line: string, now: Date): string | undefined {
    const { message, level } = messageOf(line)
    const head = { time: now.toISOString(), level, source: 'control' }
    const own = findOwnLine(message)
    if (own !== undefined) return `${JSON.stringify({ ...head, ...own })}\n`
    const found = classify(line)
    const kind = this.#counts.has(found) || this.#counts.size < MAX_CLASSES ? found : OTHER
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    if (!isPowerOfTwo(count)) return undefined
    return `${JSON.stringify({ ...head, event: 'workerd_output', class: kind, count })}\n`
  }
}
