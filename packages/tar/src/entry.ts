export type TarKind = 'file' | 'folder' | 'link' | 'hard-link' | 'special'

/** One entry of an archive. Names are in the format of `pathFromBytes`, so that any bytes are preserved. */
export interface TarEntry {
  /** As in the archive; `readArchivePath` checks it. */
  readonly path: string
  readonly kind: TarKind
  /** Bytes that follow; 0 for everything but files. */
  readonly sizeBytes: number
  /** The last twelve bits of `st_mode`. */
  readonly mode: number
  /** Nanoseconds since the epoch, in decimal: more than a number holds. */
  readonly mtimeNs: string
  /** Target of a symbolic or hard link. */
  readonly target?: string
}

/** A note from the packing to the unpacking side, such as what was omitted. Other programs ignore it. */
export interface TarNote {
  /** An error code, or what was done about the path. */
  readonly code: string
  readonly path: string
}

/** All blocks of an archive are of this size. */
export const BLOCK_BYTES = 512

/** Zero bytes that follow a content of this size. */
export function paddingOf(sizeBytes: number): number {
  return (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES
}
