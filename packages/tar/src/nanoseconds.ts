const PER_SECOND = 1_000_000_000n

/** Converts a time of an extended header, in seconds with a fraction, to nanoseconds; undefined when it is invalid. */
export function readSeconds(text: string): string | undefined {
  const [, sign, whole, fraction = ''] = /^(-?)([0-9]{1,15})(?:\.([0-9]{0,30}))?$/.exec(text) ?? []
  if (whole === undefined) return undefined
  const magnitude = BigInt(whole) * PER_SECOND + BigInt(fraction.slice(0, 9).padEnd(9, '0'))
  return String(sign === '-' ? -magnitude : magnitude)
}

/** Formats nanoseconds as seconds with a fraction, without trailing zeros. */
export function writeSeconds(ns: string): string {
  const value = BigInt(ns)
  const magnitude = value < 0n ? -value : value
  const fraction = String(magnitude % PER_SECOND)
    .padStart(9, '0')
    .replace(/0+$/, '')
  return `${value < 0n ? '-' : ''}${magnitude / PER_SECOND}${fraction === '' ? '' : `.${fraction}`}`
}

/** Whole seconds since the epoch, rounded down. */
export function wholeSeconds(ns: string): number {
  const value = BigInt(ns)
  const down = value < 0n && value % PER_SECOND !== 0n ? 1n : 0n
  return Number(value / PER_SECOND - down)
}

export function nanosecondsOf(seconds: number): string {
  return String(BigInt(seconds) * PER_SECOND)
}
