import { escapeJson, printable } from './printable.ts'

const GAP = '  '
/** Longer cells are truncated. */
const MAX_CELL_CHARS = 80

function cell(text: string): string {
  const shown = printable(text)
  return shown.length > MAX_CELL_CHARS ? `${shown.slice(0, MAX_CELL_CHARS - 1)}…` : shown
}

function align(line: readonly string[], widths: readonly number[]): string {
  return line
    .map((text, column) => text + ' '.repeat((widths[column] ?? 0) - Bun.stringWidth(text)))
    .join(GAP)
    .trimEnd()
}

/**
 * A table with aligned columns of printable characters. If it is wider than the terminal, the widest column moves to lines
 * of its own, so that ids are not broken.
 */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  stdoutColumns?: number,
): string {
  const lines = [header, ...rows.map((row) => row.map(cell))]
  const widths = header.map((_, column) =>
    Math.max(...lines.map((line) => Bun.stringWidth(line[column] ?? ''))),
  )
  const total = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1))
  if (stdoutColumns === undefined || total <= stdoutColumns || widths.length < 3)
    return lines.map((line) => `${align(line, widths)}\n`).join('')
  const widest = widths.indexOf(Math.max(...widths))
  const others = widths.toSpliced(widest, 1)
  return lines
    .map((line) => `${align(line.toSpliced(widest, 1), others)}\n${GAP}${line[widest] ?? ''}\n`)
    .join('')
}

function formatDuration(ms: number, round: (value: number) => number): string {
  const seconds = Math.max(0, round(ms / 1000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3600) return `${round(seconds / 60)}m`
  if (seconds < 48 * 3600) return `${round(seconds / 3600)}h`
  return `${round(seconds / 86_400)}d`
}

/** Age in a short form. */
export function formatAge(sinceMs: number | null | undefined, nowMs: number): string {
  return sinceMs === null || sinceMs === undefined ? '-' : formatDuration(nowMs - sinceMs, Math.floor)
}

/** Date and time in UTC, to the second. */
export function formatUtc(atMs: number): string {
  return new Date(atMs).toISOString().replace('T', ' ').slice(0, 19)
}

/** Indented JSON, safe for a terminal. */
export function formatJson(value: unknown): string {
  return `${escapeJson(JSON.stringify(value, null, 2) ?? 'null')}\n`
}

/** Time until expiry in a short form, rounded up. */
export function formatTimeLeft(untilMs: number, nowMs: number): string {
  return untilMs <= nowMs ? 'expired' : formatDuration(untilMs - nowMs, Math.ceil)
}
