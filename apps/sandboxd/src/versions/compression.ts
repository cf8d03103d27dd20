import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { Compression } from '@sandwire/version-format'

/** Least that zlib accepts. */
const MIN_CHUNK_BYTES = 64

const LEVEL = 1

/** Zstandard at its fastest usual level: saves compete with the user's programs for the processor. */
export const COMPRESSION: Compression = {
  compress: (bytes) => Bun.zstdCompressSync(bytes, { level: LEVEL }),
  compressChecked: (bytes) =>
    zstdCompressSync(bytes, {
      params: { [constants.ZSTD_c_compressionLevel]: LEVEL, [constants.ZSTD_c_checksumFlag]: 1 },
    }),
  decompress: (bytes, sizeBytes) => {
    const maxOutputLength = Math.max(1, sizeBytes)
    // One buffer for the whole result: pieces of the default size would be copied once more.
    return zstdDecompressSync(bytes, {
      maxOutputLength,
      chunkSize: Math.max(MIN_CHUNK_BYTES, maxOutputLength),
    })
  },
}
