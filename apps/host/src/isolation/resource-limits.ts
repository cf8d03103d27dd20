import { readFileSync } from 'node:fs'
import { release } from 'node:os'
import type { SandboxLimits } from '@sandwire/internal-api'

const MAX_OPEN_FILES = 4096
const MAX_FILE_BYTES = 2 * 1024 ** 3

/** What Bun reserves writable for code it compiles, and does not use: counted against the limit on written memory. */
const RESERVED_BYTES = 3 * 1024 ** 3

/** Arguments of `prlimit` for every process of a sandbox. */
export function createRlimits(limits: SandboxLimits, hasCgroup: boolean): string[] {
  const dataBytes = limits.memoryBytes + RESERVED_BYTES
  const fileBytes = Math.min(MAX_FILE_BYTES, limits.diskBytes)
  return [
    '--core=0:0',
    `--nofile=${MAX_OPEN_FILES}:${MAX_OPEN_FILES}`,
    `--fsize=${fileBytes}:${fileBytes}`,
    // Address space is not limited, since runtimes reserve far more than they use.
    ...(hasCgroup ? [] : [`--data=${dataBytes}:${dataBytes}`]),
  ]
}

/** Since Linux 5.14 processes are counted per user namespace; before, those of the whole machine count. */
const COUNTS_PER_NAMESPACE = [5, 14] as const

/** Whether this kernel counts a sandbox's processes apart from the other processes of the same user. */
export function countsPerNamespace(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10))
  const [wantedMajor, wantedMinor] = COUNTS_PER_NAMESPACE
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)
}

/** Start of a command inside the sandbox that limits how many processes there are, where no cgroup does. */
export function limitProcesses(count: number): string[] {
  return countsPerNamespace(release()) ? ['/usr/bin/prlimit', `--nproc=${count}:${count}`, '--'] : []
}

/**
 * The kernel prefers sandboxes to other programs when the whole machine runs out of memory. This is for sandboxd and bubblewrap;
 * sandboxd gives what it starts the highest score there is, so that a sandbox that is full loses processes and lives on.
 */
const RAISED = 200

const CAP_SYS_RESOURCE = 1n << 24n

/**
 * The score for sandboxd; undefined: the one it inherits. A score that is set with `CAP_SYS_RESOURCE` is also the lowest that what
 * inherits it may choose. Set without, processes could go below sandboxd, and it would be ended before them.
 */
export function chooseOomScore(status: string, uidMap: string): number | undefined {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'
  const isInitial = /^\s*0\s+0\s+4294967295\s*$/.test(uidMap)
  return isInitial && (BigInt(`0x${effective}`) & CAP_SYS_RESOURCE) !== 0n ? RAISED : undefined
}

/** What `chooseOomScore` says of this process. */
export function findOomScore(): number | undefined {
  try {
    return chooseOomScore(
      readFileSync('/proc/self/status', 'utf8'),
      readFileSync('/proc/self/uid_map', 'utf8'),
    )
  } catch {
    // A kernel without user namespaces has no map; then the score stays, which is never wrong.
    return undefined
  }
}
