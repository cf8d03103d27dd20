import { zstdDecompressSync } from 'node:zlib'
import type { Decompression } from '@sandwire/version-format'

/** Zstandard of the runtime, in native code that ends at the stated size. */
export const ZSTANDARD: Decompression = {
  decompress: (bytes, sizeBytes) => zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, sizeBytes) }),
}
