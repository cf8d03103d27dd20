import type { ErrorCode } from '@sandwire/protocol'
import type { Condition, FileStat } from '../files.ts'

/** Prefix of partial uploads; they are in the folder of the final file. */
export const UPLOAD_PREFIX = '.sandwire-upload-'

/** Position of a file's bytes in a shared buffer: one large array crosses threads faster than many small ones. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** An item to write into a folder. Paths are relative to that folder. */
export type Put = { readonly path: string } & (
  | { readonly kind: 'folder' }
  | ({ readonly kind: 'file'; readonly mode: number; readonly mtimeNs: string } & Span)
  /** A file that was opened with `openPut` and is complete. */
  | {
      readonly kind: 'written'
      readonly file: OpenPut
      readonly mode: number
      readonly mtimeNs: string
    }
  /** A file that was opened with `openPut` and is abandoned. */
  | { readonly kind: 'dropped'; readonly file: OpenPut }
  | { readonly kind: 'link'; readonly target: string; readonly mtimeNs: string }
  | { readonly kind: 'hard-link'; readonly target: string }
  /** Final mode and time of a folder, after its contents. */
  | { readonly kind: 'settled'; readonly mode: number; readonly mtimeNs: string }
)

/** A new file under a temporary name, open for writing. The receiver closes it. */
export interface OpenPut {
  readonly fd: number
  readonly hidden: string
}

/** Why one of many items failed. */
export interface Refusal {
  readonly code: ErrorCode
  /** Message without the path. */
  readonly why: string
}

/** Result for one of many paths. */
export type Read =
  /** `isChanged` when it was written to while it was read. */
  | ({ readonly kind: 'file'; readonly stat: FileStat; readonly isChanged: boolean } & Span)
  | { readonly kind: 'link'; readonly target: string; readonly stat: FileStat }
  /** With a refusal when it cannot be listed. */
  | { readonly kind: 'folder'; readonly stat: FileStat; readonly refusal?: Refusal }
  /** Too large to read at once: it is left open, and the receiver closes it. */
  | { readonly kind: 'open'; readonly fd: number; readonly stat: FileStat }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Results for many paths, with their bytes in one buffer. */
export interface ManyRead {
  readonly reads: readonly Read[]
  readonly bytes: Uint8Array
}

/** A partial upload, open for appending. The receiver closes it. */
export interface OpenUpload {
  readonly fd: number
  readonly sizeBytes: number
}

export interface FinishedUpload extends Condition {
  readonly sizeBytes: number
  readonly mode?: number
  readonly mtimeNs?: string
}

/**
 * Operations for archives and uploads. Below the named folder no link is followed; items replace files and links, never a
 * folder.
 */
export interface TransferFiles {
  /** Processes the items in order; the result has one element per item. */
  putMany(folder: string, items: readonly Put[], bytes: Uint8Array): Promise<readonly (Refusal | undefined)[]>
  openPut(folder: string, path: string): Promise<OpenPut>
  /** Reads in order. Stops after the first file larger than `maxBytes`, and after `maxBytes` in total. */
  readMany(folder: string, paths: readonly string[], maxBytes: number): Promise<ManyRead>
  /** Opens the partial upload to this path; `makes` starts one. Undefined when there is none. */
  openUpload(path: string, id: string, makes: boolean): Promise<OpenUpload | undefined>
  /** Moves an upload of exactly this size into place. */
  finishUpload(path: string, id: string, finished: FinishedUpload): Promise<FileStat>
  /** Returns whether there was one. */
  dropUpload(path: string, id: string): Promise<boolean>
}
