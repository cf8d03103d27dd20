import type { FileText } from '../editor/file-text.ts'

/** What there is in the place of a file: nothing, a folder, or something that nobody reads. */
export type NoFile = 'gone' | 'folder' | 'special'

/** What became of a file while its text was changed here. Without a text it is none any more. */
export type Theirs = { readonly text: FileText | undefined; readonly etag: string } | NoFile

/** What a pane shows of a file. */
export type FileState =
  | { readonly is: 'loading' }
  | { readonly is: 'failed'; readonly message: string; readonly isMissing: boolean }
  /** Larger than is opened without a question, or at all. */
  | { readonly is: 'large'; readonly sizeBytes: number; readonly canOpen: boolean }
  | { readonly is: 'binary'; readonly sizeBytes: number; readonly head: Uint8Array }
  | { readonly is: 'image'; readonly type: string; readonly bytes: Uint8Array }
  | {
      readonly is: 'text'
      /** The file as it was last read or written, which the editor's text is compared with. */
      readonly base: FileText
      readonly etag: string
      readonly isSaving: boolean
      /** The file became another one underneath. */
      readonly theirs?: Theirs
    }

export type TextState = Extract<FileState, { is: 'text' }>
