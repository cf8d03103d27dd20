/**
 * Frees the memory of bytes that nothing uses any more. As garbage they would stay for a while, and every further megabyte would
 * be new memory, whose page faults take as long as unpacking it.
 */
export function freeBytes(bytes: Uint8Array): void {
  const { buffer, byteLength } = bytes
  // A view of a larger buffer must not take the rest of it away.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
