import { escapeJson, printable } from './printable.ts'

const GAP = '  '
/** A cell that is longer makes the others hard to find. */
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
 * Lines with aligned columns. Whatever is in a cell, it becomes printable characters of one line. Where they are wider than
 * the terminal, the widest column has lines of its own below the others, so that an id stays in one piece.
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

/** The time between two moments, short. */
export function formatAge(sinceMs: number | null | undefined, nowMs: number): string {
  if (sinceMs === null || sinceMs === undefined) return '-'
  const seconds = Math.max(0, Math.floor((nowMs - sinceMs) / 1000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}

/** JSON for people and programs alike. */
export function formatJson(value: unknown): string {
  return `${escapeJson(JSON.stringify(value, null, 2) ?? 'null')}\n`
}

/** The time until a moment, short. */
export function formatTimeLeft(untilMs: number, nowMs: number): string {
  return untilMs <= nowMs ? 'over' : formatAge(nowMs, untilMs)
}
