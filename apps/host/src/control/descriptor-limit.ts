import { ptr } from 'bun:ffi'
import { readFileSync } from 'node:fs'
import { openLibc } from '../libc.ts'

const RLIMIT_NOFILE = 7
/** Far more than the connections that are allowed, so that a burst between two checks fits. */
const WANTED = 131_072

/** Limits of a process that may run as another user, which `prlimit` does not tell without a capability. */
function readLimits(pid: number): { readonly soft: number; readonly hard: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/limits`, 'latin1')
    const [, soft, hard] = /^Max open files +(\d+) +(\d+)/m.exec(text) ?? []
    return soft === undefined || hard === undefined ? undefined : { soft: Number(soft), hard: Number(hard) }
  } catch {
    // The process has ended.
    return undefined
  }
}

/**
 * Raises how many files another process may open: beyond its hard limit with CAP_SYS_RESOURCE, up to it otherwise. Returns the
 * limit, or undefined when it is not known.
 */
export function raiseDescriptorLimit(pid: number): number | undefined {
  const { prlimit64 } = openLibc({
    prlimit64: { args: ['i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
  })
  const set = (soft: number, hard: number): boolean =>
    prlimit64(pid, RLIMIT_NOFILE, ptr(BigUint64Array.of(BigInt(soft), BigInt(hard))), null) === 0
  const { hard } = readLimits(pid) ?? {}
  if (hard === undefined) return undefined
  if (hard >= WANTED || !set(WANTED, WANTED)) set(Math.min(hard, WANTED), hard)
  return readLimits(pid)?.soft
}
