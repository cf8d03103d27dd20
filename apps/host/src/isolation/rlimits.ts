import type { SandboxLimits } from '@sandwire/internal'

const MAX_OPEN_FILES = 4096
const MAX_FILE_BYTES = 2 * 1024 ** 3

/** What Bun reserves writable for code it compiles, and does not use: counted against the limit on written memory. */
const RESERVED_BYTES = 2 * 1024 ** 3

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
