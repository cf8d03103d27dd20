import { zstdDecompressSync } from 'node:zlib'
import type { Compression } from '@sandwire/version-format'

/** Least that zlib accepts. */
const MIN_CHUNK_BYTES = 64

/** Zstandard at its fastest usual level: saves compete with the user's programs for the processor. */
export const COMPRESSION: Compression = {
  compress: (bytes) => Bun.zstdCompressSync(bytes, { level: 1 }),
  decompress: (bytes, sizeBytes) => {
    const maxOutputLength = Math.max(1, sizeBytes)
    // One buffer for the whole result: pieces of the default size would be copied once more.
    return zstdDecompressSync(bytes, {
      maxOutputLength,
      chunkSize: Math.max(MIN_CHUNK_BYTES, maxOutputLength),
    })
  },
}
