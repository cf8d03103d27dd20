const UNITS: Readonly<Record<string, number>> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** Parses bytes: `512M`, `1G`, `1.5GiB`, `1048576`. Units are powers of 1024. */
export function parseBytes(text: string): number | undefined {
  const [, number, unit] = /^([0-9]{1,15}(?:\.[0-9]{1,3})?)([KMGT]?)(?:i?B)?$/i.exec(text) ?? []
  const factor = UNITS[unit?.toUpperCase() ?? '-']
  if (number === undefined || factor === undefined) return undefined
  const bytes = Math.round(Number(number) * factor)
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

const LARGEST_FIRST = ['T', 'G', 'M', 'K'] as const

/** Bytes in the largest unit that fits, such as `1.5G`. */
export function formatBytes(bytes: number): string {
  const unit = LARGEST_FIRST.find((each) => bytes >= (UNITS[each] ?? 1)) ?? ''
  return `${Number((bytes / (UNITS[unit] ?? 1)).toFixed(1))}${unit}`
}

/** Parses a duration in seconds: `30s`, `10m`, `2h`, `1d`, `90`. */
export function parseSeconds(text: string): number | undefined {
  const [, number, unit = 's'] = /^([0-9]{1,9})([smhd])?$/.exec(text) ?? []
  const factor = SECONDS[unit]
  return number === undefined || factor === undefined ? undefined : Number(number) * factor
}
