/** Input waits in pieces of up to this size, so that a queue of single keystrokes stays short. */
const JOINED_BYTES = 4_096

/** Two pieces of input as one, or undefined when that would be more than a piece should hold. */
export function joinInput(last: Uint8Array, next: Uint8Array): Uint8Array | undefined {
  const length = last.byteLength + next.byteLength
  if (length > JOINED_BYTES) return undefined
  const joined = new Uint8Array(length)
  joined.set(last)
  joined.set(next, last.byteLength)
  return joined
}
