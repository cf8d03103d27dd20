type Fields = Readonly<Record<string, unknown>>

/** Words that begin a message of workerd, up to a colon: plain ones, too short to be a credential. */
const CLASS = /^[A-Za-z]{1,16}(?: [A-Za-z]{1,16}){0,3}(?=: )/
/** What cannot be told apart. */
const OTHER = 'other'
/** Kinds that are counted apart; workerd has a handful. */
const MAX_CLASSES = 50

function parse(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    // Not JSON: not control's.
    return undefined
  }
}

/** The line that control wrote, whose fields it chose by its own allowlist. */
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

/** What kind of thing workerd says, in words of its own. What follows them can be what a stranger sent: an address, a header. */
export function classify(line: string): string {
  return CLASS.exec(messageOf(line).message)?.[0] ?? OTHER
}

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count))
}

/**
 * Turns lines that workerd prints into those of the host's log. Control's own pass as they are. Of all others only the kind and
 * its count are told, ever more rarely: whoever can connect can cause them.
 */
export class ControlLog {
  readonly #counts = new Map<string, number>()

  /** The line for the log; undefined when there is nothing new to say. */
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
    return `${JSON.stringify({ ...head, event: 'workerd_said', class: kind, count })}\n`
  }
}
