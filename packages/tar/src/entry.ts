/** What an entry of an archive is. */
export type TarKind = 'file' | 'folder' | 'link' | 'hard-link' | 'special'

/** One entry of an archive. Names are text as `pathFromBytes` makes it, so that any bytes survive. */
export interface TarEntry {
  /** As it stands in the archive; `readArchivePath` says whether it may be used. */
  readonly path: string
  readonly kind: TarKind
  /** Bytes that follow; 0 for everything but files. */
  readonly sizeBytes: number
  /** The last twelve bits of `st_mode`. */
  readonly mode: number
  /** Nanoseconds since the epoch, in decimal: more than a number holds. */
  readonly mtimeNs: string
  /** Where a link or a hard link leads to. */
  readonly target?: string
}

/** Something that whoever packs tells whoever unpacks, such as what is not in the archive. Other programs do not see it. */
export interface TarNote {
  /** An error code, or what was done about the path. */
  readonly code: string
  readonly path: string
}

/** All blocks of an archive are of this size. */
export const BLOCK_BYTES = 512

/** Zeros that follow so many bytes. */
export function paddingOf(sizeBytes: number): number {
  return (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES
}
