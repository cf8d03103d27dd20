import type { PieceSource } from './send-file.ts'

/** Pieces of a stream, of which the last one can be asked for again. */
export function streamSource(stream: ReadableStream<Uint8Array>): PieceSource {
  const reader = stream.getReader()
  let start = 0
  let held: Uint8Array<ArrayBuffer> = new Uint8Array(0)
  const next = async (maxBytes: number): Promise<Uint8Array<ArrayBuffer>> => {
    const chunks: Uint8Array[] = []
    let bytes = 0
    while (bytes < maxBytes) {
      const { done, value } = await reader.read()
      if (done) break
      chunks.push(value)
      bytes += value.byteLength
    }
    return Uint8Array.from(Buffer.concat(chunks))
  }
  return {
    read: async (offset, maxBytes) => {
      if (offset < start) throw new Error('Cannot read a stream again')
      if (offset < start + held.length) return held.subarray(offset - start)
      start += held.length
      held = await next(maxBytes)
      return held
    },
  }
}
