import { readFileSync } from 'node:fs'
import { release } from 'node:os'
import type { SandboxLimits } from '@sandwire/internal-api'

const MAX_OPEN_FILES = 4096
const MAX_FILE_BYTES = 2 * 1024 ** 3

/** Bun reserves this much writable memory for its JIT, which counts against RLIMIT_DATA. */
const RESERVED_BYTES = 3 * 1024 ** 3

/** Most bytes in one file. */
export function maxFileBytes({ diskBytes }: Pick<SandboxLimits, 'diskBytes'>): number {
  return Math.min(MAX_FILE_BYTES, diskBytes)
}

/** Arguments of `prlimit` for every process of a sandbox. */
export function createRlimits(limits: SandboxLimits, hasCgroup: boolean): string[] {
  const dataBytes = limits.memoryBytes + RESERVED_BYTES
  const fileBytes = maxFileBytes(limits)
  return [
    '--core=0:0',
    `--nofile=${MAX_OPEN_FILES}:${MAX_OPEN_FILES}`,
    `--fsize=${fileBytes}:${fileBytes}`,
    // Address space is unlimited, because runtimes reserve far more than they use.
    ...(hasCgroup ? [] : [`--data=${dataBytes}:${dataBytes}`]),
  ]
}

/** Since Linux 5.14, RLIMIT_NPROC counts per user namespace; before, per machine. */
const COUNTS_PER_NAMESPACE = [5, 14] as const

/** True when the kernel counts a sandbox's processes separately. */
export function countsPerNamespace(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10))
  const [wantedMajor, wantedMinor] = COUNTS_PER_NAMESPACE
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)
}

/** Command prefix that limits the number of processes without a cgroup. */
export function limitProcesses(count: number): string[] {
  return countsPerNamespace(release()) ? ['/usr/bin/prlimit', `--nproc=${count}:${count}`, '--'] : []
}

/**
 * When the machine runs out of memory, the kernel kills sandboxes before other programs. This is the score of sandboxd and
 * bubblewrap; sandboxd gives its processes the highest score, so that a full sandbox loses processes and continues.
 */
const RAISED = 200

const CAP_SYS_RESOURCE = 1n << 24n

/**
 * The score of sandboxd; undefined: inherited. A score set with `CAP_SYS_RESOURCE` is also the minimum for children. Without that,
 * processes could choose a lower score than sandboxd's, which would then be killed first.
 */
export function chooseOomScore(status: string, uidMap: string): number | undefined {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'
  const isInitial = /^\s*0\s+0\s+4294967295\s*$/.test(uidMap)
  return isInitial && (BigInt(`0x${effective}`) & CAP_SYS_RESOURCE) !== 0n ? RAISED : undefined
}

/** `chooseOomScore` for this process. */
export function findOomScore(): number | undefined {
  try {
    return chooseOomScore(
      readFileSync('/proc/self/status', 'utf8'),
      readFileSync('/proc/self/uid_map', 'utf8'),
    )
  } catch {
    // A kernel without user namespaces has no uid_map; the inherited score is safe.
    return undefined
  }
}
