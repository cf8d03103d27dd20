import type { Entry, FileStat, Found, Listing, NewFile, OpenFile, PendingFile } from '../files.ts'
import type { Copied } from '../files/copy.ts'
import type { ListLimits } from '../files/listing.ts'
import type { Committed, FolderOptions } from '../files/write.ts'
import type { RemoveOptions } from '../files/remove.ts'
import type { RenameOptions } from '../files/rename.ts'
import type { UploadRequest } from '../files/upload-file.ts'
import type { WalkBounds, WalkEnd } from '../files/walk.ts'
import type {
  FinishedUpload,
  OpenPut,
  OpenUpload,
  Put,
  ManyRead,
  Refusal,
} from '../transfer/transfer-files.ts'
import type { ThreadSetUp } from './thread-messages.ts'

/** First message to the thread. */
export interface SetUp extends ThreadSetUp {
  readonly root: string
  readonly umask: number
}

export type FileRequest =
  | { readonly verb: 'stat'; readonly path: string; readonly followsLink: boolean }
  | { readonly verb: 'list'; readonly path: string; readonly limits: ListLimits }
  | { readonly verb: 'open'; readonly path: string }
  | { readonly verb: 'openFolder'; readonly path: string }
  | { readonly verb: 'create'; readonly pending: number; readonly path: string; readonly file: NewFile }
  | { readonly verb: 'commit'; readonly pending: number }
  | { readonly verb: 'discard'; readonly pending: number }
  | { readonly verb: 'makeFolder'; readonly path: string; readonly options: FolderOptions }
  | { readonly verb: 'remove'; readonly path: string; readonly options: RemoveOptions }
  | { readonly verb: 'rename'; readonly from: string; readonly to: string; readonly options: RenameOptions }
  | {
      readonly verb: 'copy'
      readonly from: string
      readonly to: string
      readonly options: { readonly replaces: boolean }
    }
  | { readonly verb: 'walk'; readonly path: string; readonly bounds: WalkBounds }
  | {
      readonly verb: 'putMany'
      readonly folder: string
      readonly what: { readonly items: readonly Put[]; readonly bytes: Uint8Array }
    }
  | { readonly verb: 'openPut'; readonly folder: string; readonly path: string }
  | {
      readonly verb: 'readMany'
      readonly folder: string
      readonly what: { readonly paths: readonly string[]; readonly maxBytes: number }
    }
  | {
      readonly verb: 'openUpload'
      readonly upload: UploadRequest
      readonly how: { readonly makes: boolean; readonly staleBeforeNs: string }
    }
  | { readonly verb: 'finishUpload'; readonly upload: UploadRequest; readonly finished: FinishedUpload }
  | { readonly verb: 'dropUpload'; readonly upload: UploadRequest }

/** Result of each request. */
export interface FileResults {
  readonly stat: FileStat & Pick<Entry, 'target'>
  readonly list: Listing
  readonly open: OpenFile
  readonly openFolder: number
  readonly create: PendingFile
  readonly commit: Committed
  readonly discard: undefined
  readonly makeFolder: undefined
  readonly remove: undefined
  readonly rename: undefined
  readonly copy: Copied
  readonly walk: WalkEnd
  readonly putMany: readonly (Refusal | undefined)[]
  readonly openPut: OpenPut
  readonly readMany: ManyRead
  readonly openUpload: OpenUpload | undefined
  readonly finishUpload: FileStat
  readonly dropUpload: boolean
}

/** Messages of the thread that serves files. */
export interface FileThread {
  readonly setUp: SetUp
  readonly request: FileRequest
  readonly results: FileResults
  readonly part: readonly Found[]
}
