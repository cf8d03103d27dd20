import { printable } from '../text/printable.ts'

/** How far a copy is. */
export interface Progress {
  readonly bytes: number
  /** All there will be, where that is known. */
  readonly totalBytes: number | undefined
  readonly entries: number
  /** What is being copied. */
  readonly name: string
  readonly elapsedMs: number
  /** Why nothing moves for now. */
  readonly trouble?: string | undefined
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
const MAX_NAME_COLUMNS = 30

function spellBytes(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  const value = bytes / 1024 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power] ?? ''}`
}

function spellTime(seconds: number): string {
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

/** One line that fits, of printable characters only. */
export function spellProgress(progress: Progress, columns: number): string {
  const { bytes, totalBytes, entries, name, elapsedMs, trouble } = progress
  const perSecond = elapsedMs < 200 ? undefined : bytes / (elapsedMs / 1000)
  const parts = [shorten(name)]
  if (totalBytes === undefined || totalBytes === 0) parts.push(spellBytes(bytes))
  else
    parts.push(
      `${Math.floor((bytes / totalBytes) * 100)}%`,
      `${spellBytes(bytes)} of ${spellBytes(totalBytes)}`,
    )
  if (entries > 1) parts.push(`${entries} entries`)
  if (trouble !== undefined) parts.push(printable(trouble))
  else if (perSecond !== undefined && perSecond > 0) {
    parts.push(`${spellBytes(perSecond)}/s`)
    if (totalBytes !== undefined && totalBytes > bytes)
      parts.push(`${spellTime((totalBytes - bytes) / perSecond)} left`)
  }
  const line = parts.filter((part) => part !== '').join('  ')
  return Array.from(line)
    .slice(0, Math.max(0, columns - 1))
    .join('')
}
