export { compareVersions, type VersionChange } from './compare.ts'
export { freeBytes } from './free-bytes.ts'
export { FolderIndex } from './folder-index.ts'
export { ByteReader, ByteWriter, damaged } from './byte-stream.ts'
export {
  BLOCK_BYTES,
  blockCount,
  type ChunkRef,
  compareBytes,
  decodeFolder,
  decodeManifest,
  encodeFolder,
  encodeManifest,
  readManifest,
  type ExtendedAttribute,
  type FileEntry,
  type FolderListing,
  type ManifestEntry,
  type ManifestPart,
  type SegmentId,
  SegmentNumbers,
} from './manifest.ts'
export { isSafeName, isSafePath, latin1Bytes, latin1Text, parentOf, pathIn } from './names.ts'
export {
  type BuiltSegment,
  checkHeader,
  type Chunk,
  type Compression,
  type Decompression,
  type Frame,
  HASH_BYTES,
  MAX_CHUNKS,
  readFrame,
  readTrailer,
  SegmentBuilder,
  type Trailer,
  trailerSize,
} from './segment.ts'
export { buildTree, type VersionTree } from './tree.ts'
