const UNITS = [
  { name: 'day', ms: 24 * 60 * 60 * 1000 },
  { name: 'hour', ms: 60 * 60 * 1000 },
  { name: 'minute', ms: 60 * 1000 },
] as const

const words = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'long' })

/** A point in time relative to now: "in 3 hours", "2 days ago", "now". */
export function formatRelativeTime(atMs: number, nowMs: number): string {
  const distanceMs = atMs - nowMs
  const unit = UNITS.find(({ ms }) => Math.abs(distanceMs) >= ms)
  return unit === undefined ? 'now' : words.format(Math.round(distanceMs / unit.ms), unit.name)
}

/** An age: "3 h", "2 d". */
export function formatAge(sinceMs: number, nowMs: number): string {
  const minutes = Math.max(0, Math.floor((nowMs - sinceMs) / 60_000))
  if (minutes === 0) return '<1 min'
  if (minutes < 60) return `${minutes} min`
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`
  return `${Math.floor(minutes / (24 * 60))} d`
}
