/** Largest joined piece; joining keeps a queue of single keystrokes short. */
const JOINED_BYTES = 4_096

/** Joins two pieces of input; undefined when the result would be too large. */
export function joinInput(last: Uint8Array, next: Uint8Array): Uint8Array | undefined {
  if (last.byteLength + next.byteLength > JOINED_BYTES) return undefined
  return Buffer.concat([last, next])
}
