import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import path from 'node:path'
import { STOP_REASON_FILE } from '@sandwire/internal-api'
import { parseStopReason, type StopReason } from '@sandwire/protocol'
import type { ListenAddress } from './server.ts'

/** Longer than any reason. */
const MAX_REASON_BYTES = 64

/** Reads the reason that a supervisor wrote beside the socket; undefined when there is none or it is unknown. */
export function readStopReason(address: ListenAddress): StopReason | undefined {
  if (address.kind !== 'unix') return undefined
  return parseStopReason(readShortFile(path.join(path.dirname(address.path), STOP_REASON_FILE)))
}

/** Processes of this user can create the file too, so symlinks, pipes and endless files must not block or mislead. */
function readShortFile(file: string): string | undefined {
  try {
    const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      if (!fstatSync(fd).isFile()) return undefined
      const bytes = new Uint8Array(MAX_REASON_BYTES)
      return new TextDecoder().decode(bytes.subarray(0, readSync(fd, bytes)))
    } finally {
      closeSync(fd)
    }
  } catch {
    // Missing or unreadable: no reason.
    return undefined
  }
}
