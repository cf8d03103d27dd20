import { printable } from '../text/printable.ts'

/** Progress of a copy. */
export interface Progress {
  readonly bytes: number
  /** Undefined if unknown. */
  readonly totalBytes: number | undefined
  readonly entries: number
  /** Name of the current entry. */
  readonly name: string
  readonly elapsedMs: number
  /** Why the copy is stalled. */
  readonly problem?: string | undefined
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
const MAX_NAME_COLUMNS = 30

function formatBytes(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  const value = bytes / 1024 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power] ?? ''}`
}

function formatTime(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole >= 3600)
    return `${Math.floor(whole / 3600)}:${String(Math.floor((whole % 3600) / 60)).padStart(2, '0')} h`
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

function shorten(name: string): string {
  const characters = Array.from(printable(name))
  if (Bun.stringWidth(characters.join('')) <= MAX_NAME_COLUMNS) return characters.join('')
  return `…${characters.slice(-MAX_NAME_COLUMNS / 2).join('')}`
}

/** One line of printable characters that fits the terminal. */
export function formatProgress(progress: Progress, columns: number): string {
  const { bytes, totalBytes, entries, name, elapsedMs, problem } = progress
  const perSecond = elapsedMs < 200 ? undefined : bytes / (elapsedMs / 1000)
  const parts = [shorten(name)]
  if (totalBytes === undefined || totalBytes === 0) parts.push(formatBytes(bytes))
  else
    parts.push(
      `${Math.floor((bytes / totalBytes) * 100)}%`,
      `${formatBytes(bytes)} of ${formatBytes(totalBytes)}`,
    )
  if (entries > 1) parts.push(`${entries} entries`)
  if (problem !== undefined) parts.push(printable(problem))
  else if (perSecond !== undefined && perSecond > 0) {
    parts.push(`${formatBytes(perSecond)}/s`)
    if (totalBytes !== undefined && totalBytes > bytes)
      parts.push(`${formatTime((totalBytes - bytes) / perSecond)} left`)
  }
  const line = parts.filter((part) => part !== '').join('  ')
  return Array.from(line)
    .slice(0, Math.max(0, columns - 1))
    .join('')
}

/** Maximum number of lines about problems. */
const MAX_LINES = 10

/** Entries that were skipped, or changed during the copy. */
class CopyProblems {
  readonly #lines: string[] = []
  #count = 0

  add(path: string, reason: string): void {
    this.#addLine(`skipped "${printable(path)}": ${printable(reason)}`)
  }

  /** The file was copied, but may contain parts of two versions. */
  addChanged(path: string): void {
    this.#addLine(`"${printable(path)}" changed while it was copied; check it`)
  }

  #addLine(line: string): void {
    this.#count += 1
    if (this.#lines.length < MAX_LINES) this.#lines.push(line)
  }

  /** Counts further problems without details. */
  addMore(count: number): void {
    this.#count += count
  }

  get count(): number {
    return this.#count
  }

  get lines(): readonly string[] {
    const more = this.#count - this.#lines.length
    return more === 0 ? this.#lines : [...this.#lines, `and ${more} more`]
  }
}

/** Interval of updates. */
const DRAW_EVERY_MS = 100
const CLEAR_LINE = '\r\x1b[K'

/** The terminal that progress is drawn on. */
export interface ProgressTerminal {
  readonly write: (text: string) => void
  readonly columns: () => number
}

/** Progress and problems of one copy, with a line on the terminal. */
export class CopyReport implements Disposable {
  readonly problems = new CopyProblems()
  readonly #terminal: ProgressTerminal | undefined
  readonly #now: () => number
  readonly #startedMs: number
  #bytes = 0
  #entries = 0
  #totalBytes: number | undefined
  #name = ''
  #problem: string | undefined
  #drawnMs = Number.NEGATIVE_INFINITY
  #isShown = false
  #resumable: string | undefined

  constructor(terminal: ProgressTerminal | undefined, now: () => number) {
    this.#terminal = terminal
    this.#now = now
    this.#startedMs = now()
  }

  /** True if progress is shown. */
  get isEnabled(): boolean {
    return this.#terminal !== undefined
  }

  /** Totals for JSON output. `leftOut` counts entries that were skipped, or changed during the copy. */
  get summary(): { readonly entries: number; readonly bytes: number; readonly leftOut: number } {
    return { entries: this.#entries, bytes: this.#bytes, leftOut: this.problems.count }
  }

  /** An upload that can be resumed by copying again. */
  get resumable(): string | undefined {
    return this.#resumable
  }

  markResumable(path: string): void {
    this.#resumable = path
  }

  setTotal(totalBytes: number | undefined): void {
    this.#totalBytes = totalBytes
  }

  startEntry(name: string): void {
    this.#name = name
    this.#draw()
  }

  /** Adds copied bytes; negative when they have to be copied again. */
  addBytes(bytes: number): void {
    this.#bytes += bytes
    this.#problem = undefined
    this.#draw()
  }

  addEntries(count = 1): void {
    this.#entries += count
    this.#draw()
  }

  /** Shows why the copy is stalled. */
  stalled(problem: string): void {
    this.#problem = problem
    this.#drawnMs = Number.NEGATIVE_INFINITY
    this.#draw()
  }

  [Symbol.dispose](): void {
    if (this.#isShown) this.#terminal?.write(CLEAR_LINE)
    this.#isShown = false
  }

  #draw(): void {
    const now = this.#now()
    if (this.#terminal === undefined || now - this.#drawnMs < DRAW_EVERY_MS) return
    this.#drawnMs = now
    const progress: Progress = {
      bytes: this.#bytes,
      totalBytes: this.#totalBytes,
      entries: this.#entries,
      name: this.#name,
      elapsedMs: now - this.#startedMs,
      problem: this.#problem,
    }
    this.#isShown = true
    this.#terminal.write(`${CLEAR_LINE}${formatProgress(progress, this.#terminal.columns())}`)
  }
}
