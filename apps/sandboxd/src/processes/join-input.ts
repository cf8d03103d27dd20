import { concatBytes } from '@sandwire/bytes'

/** Input waits in pieces of up to this size, so that a queue of single keystrokes stays short. */
const JOINED_BYTES = 4_096

/** Two pieces of input as one, or undefined when that would be more than a piece should hold. */
export function joinInput(last: Uint8Array, next: Uint8Array): Uint8Array | undefined {
  if (last.byteLength + next.byteLength > JOINED_BYTES) return undefined
  return concatBytes([last, next])
}
