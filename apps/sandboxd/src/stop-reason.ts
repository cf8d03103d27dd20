import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import path from 'node:path'
import { STOP_REASON_FILE } from '@sandwire/internal-api'
import type { ListenAddress } from './server.ts'

/** Longer than any reason. */
const MAX_BYTES = 64

/** Reasons that are told, in words. */
const WORDS: Readonly<Record<string, string>> = {
  asked: 'somebody asked for it',
  idle: 'it was idle',
  removed: 'it is removed',
  shutting_down: 'its server is',
  unclaimed: 'its server is gone',
}

/** Why this process is asked to end, in words; undefined when nobody left a reason, or one that is not known. */
export function findStopReason(address: ListenAddress): string | undefined {
  if (address.kind !== 'unix') return undefined
  const reason = readShort(path.join(path.dirname(address.path), STOP_REASON_FILE))
  return reason !== undefined && Object.hasOwn(WORDS, reason) ? WORDS[reason] : undefined
}

/** Processes of this user may have put anything there, also what never ends to be read. */
function readShort(file: string): string | undefined {
  try {
    const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      if (!fstatSync(fd).isFile()) return undefined
      const bytes = new Uint8Array(MAX_BYTES)
      return new TextDecoder().decode(bytes.subarray(0, readSync(fd, bytes)))
    } finally {
      closeSync(fd)
    }
  } catch {
    // There is none.
    return undefined
  }
}
