import { type Environment, read } from './input.ts'

/** Settings of the disk that holds the data folder. */
export interface DiskSettings {
  /** Held back for control. Absent: by the size of the disk. */
  readonly reserveBytes?: number
  /** How many times the available space the disks of sandboxes may add up to. */
  readonly overcommit: number
  /** Limit on reads and on writes of each sandbox, where cgroups have one; 0: none. */
  readonly bytesPerSecond: number
}

const DEFAULT_OVERCOMMIT = 4
/** Less than half of what a solid-state disk delivers. */
const DEFAULT_BYTES_PER_SECOND = 256 * 1024 ** 2
const MAX_OVERCOMMIT = 1_000
const UNITS: Readonly<Record<string, number>> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }

function validateBytes(name: string, env: Environment, problems: string[]): number | undefined {
  const text = read(env, name)
  if (text === undefined) return undefined
  const [, digits = '', unit = ''] = /^([0-9]{1,15})([KMGT]?)$/.exec(text) ?? []
  const bytes = Number(digits) * (UNITS[unit] ?? 1)
  if (digits !== '' && Number.isSafeInteger(bytes)) return bytes
  problems.push(`${name} is "${text}": give bytes, or a number with K, M, G or T`)
  return undefined
}

function validateOvercommit(env: Environment, problems: string[]): number {
  const text = read(env, 'SANDWIRE_DISK_OVERCOMMIT')
  if (text === undefined) return DEFAULT_OVERCOMMIT
  const times = /^[0-9]{1,4}(?:\.[0-9]{1,3})?$/.test(text) ? Number(text) : Number.NaN
  if (times >= 1 && times <= MAX_OVERCOMMIT) return times
  problems.push(`SANDWIRE_DISK_OVERCOMMIT is "${text}": give a number from 1 to ${MAX_OVERCOMMIT}`)
  return DEFAULT_OVERCOMMIT
}

export function validateDisk(env: Environment, problems: string[]): DiskSettings {
  const reserveBytes = validateBytes('SANDWIRE_DISK_RESERVE', env, problems)
  return {
    ...(reserveBytes !== undefined && { reserveBytes }),
    overcommit: validateOvercommit(env, problems),
    bytesPerSecond: validateBytes('SANDWIRE_DISK_BANDWIDTH', env, problems) ?? DEFAULT_BYTES_PER_SECOND,
  }
}
