import { zstdDecompressSync } from 'node:zlib'
import type { Compression } from '@sandwire/version-format'

/** Zstandard at its fastest usual level: saves compete with the user's programs for the processor. */
export const COMPRESSION: Compression = {
  compress: (bytes) => Bun.zstdCompressSync(bytes, { level: 1 }),
  decompress: (bytes, sizeBytes) => zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, sizeBytes) }),
}
