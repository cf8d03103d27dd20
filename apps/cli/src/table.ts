import { escapeJson, printable } from './printable.ts'

const GAP = '  '
/** A cell that is longer makes the others hard to find. */
const MAX_CELL_CHARS = 80

function cell(text: string): string {
  const shown = printable(text)
  return shown.length > MAX_CELL_CHARS ? `${shown.slice(0, MAX_CELL_CHARS - 1)}…` : shown
}

/** Lines with aligned columns. Whatever is in a cell, it becomes printable characters of one line. */
export function spellTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, ...rows.map((row) => row.map(cell))]
  const widths = header.map((_, column) =>
    Math.max(...lines.map((line) => Bun.stringWidth(line[column] ?? ''))),
  )
  return lines
    .map((line) =>
      line
        .map((text, column) => text + ' '.repeat((widths[column] ?? 0) - Bun.stringWidth(text)))
        .join(GAP)
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('')
}

/** The time between two moments, short. */
export function spellAge(sinceMs: number | null | undefined, nowMs: number): string {
  if (sinceMs === null || sinceMs === undefined) return '-'
  const seconds = Math.max(0, Math.floor((nowMs - sinceMs) / 1000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}

/** JSON for people and programs alike. */
export function spellJson(value: unknown): string {
  return `${escapeJson(JSON.stringify(value, null, 2) ?? 'null')}\n`
}

/** The time until a moment, short. */
export function spellLeft(untilMs: number, nowMs: number): string {
  return untilMs <= nowMs ? 'over' : spellAge(nowMs, untilMs)
}
