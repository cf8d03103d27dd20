import { type Environment, read } from './input.ts'

/** Settings of the disk that holds the data folder. */
export interface DiskSettings {
  /** Held back for control. Absent: by the size of the disk. */
  readonly reserveBytes?: number
  /** How many times the available space the disks of sandboxes may add up to. */
  readonly overcommit: number
}

const DEFAULT_OVERCOMMIT = 4
const MAX_OVERCOMMIT = 1_000
const UNITS: Readonly<Record<string, number>> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }

function validateReserve(env: Environment, problems: string[]): number | undefined {
  const text = read(env, 'SANDWIRE_DISK_RESERVE')
  if (text === undefined) return undefined
  const [, digits = '', unit = ''] = /^([0-9]{1,15})([KMGT]?)$/.exec(text) ?? []
  const bytes = Number(digits) * (UNITS[unit] ?? 1)
  if (digits !== '' && Number.isSafeInteger(bytes)) return bytes
  problems.push(`SANDWIRE_DISK_RESERVE is "${text}": give bytes, or a number with K, M, G or T`)
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
  const reserveBytes = validateReserve(env, problems)
  return {
    ...(reserveBytes !== undefined && { reserveBytes }),
    overcommit: validateOvercommit(env, problems),
  }
}
