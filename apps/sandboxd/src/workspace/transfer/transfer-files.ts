import type { ErrorCode } from '@sandwire/protocol'
import type { Condition, FileStat } from '../files.ts'

/** What the names of uploads that are not finished begin with; they are beside the file that they become. */
export const UPLOAD_PREFIX = '.sandwire-upload-'

/** Where the bytes of one file are among those of many: one large array crosses to another thread sooner than many small ones. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** Something that is put into a folder. Paths are from that folder. */
export type Put = { readonly path: string } & (
  | { readonly is: 'folder' }
  | ({ readonly is: 'file'; readonly mode: number; readonly mtimeNs: string } & Span)
  /** A file that was opened with `openPut` and is written. */
  | {
      readonly is: 'written'
      readonly file: OpenPut
      readonly mode: number
      readonly mtimeNs: string
    }
  /** The same, given up. */
  | { readonly is: 'dropped'; readonly file: OpenPut }
  | { readonly is: 'link'; readonly target: string; readonly mtimeNs: string }
  /** A further name of a file that is there. */
  | { readonly is: 'hard-link'; readonly target: string }
  /** The mode and time of a folder, when everything is in it. */
  | { readonly is: 'settled'; readonly mode: number; readonly mtimeNs: string }
)

/** A new file under a hidden name, open to write. Whoever got it closes it. */
export interface OpenPut {
  readonly fd: number
  readonly hidden: string
}

/** Why one of many was not done. */
export interface Refusal {
  readonly code: ErrorCode
  /** In words, without the path. */
  readonly why: string
}

/** What was read of one of many. */
export type Read =
  /** With `isChanged` when somebody wrote to it meanwhile. */
  | ({ readonly is: 'file'; readonly stat: FileStat; readonly isChanged: boolean } & Span)
  | { readonly is: 'link'; readonly target: string; readonly stat: FileStat }
  /** With a refusal when what is in it may not be read. */
  | { readonly is: 'folder'; readonly stat: FileStat; readonly refusal?: Refusal }
  /** Longer than what is read at once: it is open, and whoever got it closes it. */
  | { readonly is: 'open'; readonly fd: number; readonly stat: FileStat }
  | { readonly is: 'refused'; readonly refusal: Refusal }

/** What was read of many, and the bytes of all of them. */
export interface ManyRead {
  readonly reads: readonly Read[]
  readonly bytes: Uint8Array
}

/** An upload in pieces, open to be written further. Whoever got it closes it. */
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
 * Many files at once, and files in pieces: what a copy of a folder is made of. Below the folder that is named no link is followed;
 * what is put replaces files and links, and never a folder.
 */
export interface TransferFiles {
  /** Does each in order; the answer has as many places. */
  putMany(folder: string, items: readonly Put[], bytes: Uint8Array): Promise<readonly (Refusal | undefined)[]>
  openPut(folder: string, path: string): Promise<OpenPut>
  /** Reads in order. Behind the first file that is longer than `maxBytes`, and behind as many bytes in all, nothing more is read. */
  readMany(folder: string, paths: readonly string[], maxBytes: number): Promise<ManyRead>
  /** The bytes of an upload to this path that have arrived; `makes` begins one. Undefined when there is none. */
  openUpload(path: string, id: string, makes: boolean): Promise<OpenUpload | undefined>
  /** Puts an upload of exactly this size into its place. */
  finishUpload(path: string, id: string, finished: FinishedUpload): Promise<FileStat>
  /** Whether there was one. */
  dropUpload(path: string, id: string): Promise<boolean>
}
