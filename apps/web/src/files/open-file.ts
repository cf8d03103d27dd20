import { createStore, type Store } from '@sandwire/client'
import { ApiError, isUnreachable } from '../api/request.ts'
import { type FileVersion, type OutgrownFile, readFile, statFile, writeFile } from '../api/workspace.ts'
import { FileText } from '../editor/file-text.ts'
import { Refetch } from '../state/refetch.ts'
import { messageOf } from '../state/workbench.ts'
import { fileTexts } from '../texts/files.ts'
import { HEX_BYTES, imageType, isDrawing, MAX_EDIT_BYTES, MAX_OPEN_BYTES, textOf } from './file-kind.ts'

/** What a file needs of the server. */
export interface FileAccess {
  stat(): Promise<{ readonly size: number; readonly etag: string }>
  /** Reads no further than the headers when the file is larger than `canOpen` accepts. */
  read(canOpen: (sizeBytes: number) => boolean): Promise<FileVersion | OutgrownFile>
  write(text: string, condition: { readonly etag: string } | 'new' | 'any'): Promise<string>
}

export function accessTo(sandbox: string, path: string): FileAccess {
  return {
    stat: () => statFile(sandbox, path),
    read: (canOpen) => readFile(sandbox, path, canOpen),
    write: (text, condition) => writeFile(sandbox, path, text, condition),
  }
}

function isOutgrown(version: unknown): version is OutgrownFile {
  return typeof version === 'object' && version !== null && 'sizeBytes' in version
}

/** What there is in the place of a file: nothing, a folder, or something that nobody reads. */
type FileProblem = 'gone' | 'folder' | 'special'

/** What became of a file while its text was changed here. Without a text it is none any more. */
export type Theirs = { readonly text: FileText | undefined; readonly etag: string } | FileProblem

/** What a pane shows of a file. */
type FileState =
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

/** What the server says of a place where there is no file. */
const CODES: Readonly<Record<string, FileProblem>> = {
  file_not_found: 'gone',
  // The folder that it was in.
  not_a_folder: 'gone',
  is_a_folder: 'folder',
  special_file: 'special',
}

/** What there is in the place of a file that could not be read or written; undefined when that was not the reason. */
function findFileProblem(caught: unknown): FileProblem | undefined {
  return caught instanceof ApiError ? CODES[caught.code] : undefined
}

/** More texts than anybody tries to save on a link that is down. */
const MAX_UNANSWERED = 8

function textIn({ bytes }: FileVersion): FileText | undefined {
  const text = textOf(bytes)
  return text === undefined ? undefined : FileText.of(text)
}

/**
 * A file in an editor: which version its text comes from, and what became of the file meanwhile. Nothing is ever written over a
 * version that the person has not seen. What it knows may change during every `await`: a state from before one is never set again.
 */
export class OpenFile {
  #access: FileAccess
  #path: string
  readonly #state = createStore<FileState>({ is: 'loading' })
  readonly #dirty = createStore(false)
  readonly #asked = createStore(0)
  /** The text in the editor; told by it. */
  #text = FileText.of('')
  /** The page moves it: that it is not in its place says nothing. */
  #isMoving = false
  /** A save that is under way. */
  #saving: Promise<void> | undefined
  /** How many saves have begun. What was read before one may be older than what it wrote. */
  #saves = 0
  /** Texts that were sent and not answered: the file may have one of them. */
  #unanswered: readonly FileText[] = []
  /** How many loads have begun; the last one counts. */
  #loads = 0
  /** The person was asked about its size. */
  #opensLarge = false
  /** Ends with a word that an input method puts together, which a change of what is shown would break. */
  #word: PromiseWithResolvers<void> | undefined
  /** News that comes during a look may be newer than what it sees; all of it is seen by one more. */
  readonly #refetch = new Refetch(() => this.#refreshOnce())

  constructor(access: FileAccess, path: string) {
    this.#access = access
    this.#path = path
    this.#state.subscribe(() => this.#compare())
  }

  get state(): Store<FileState> {
    return this.#state
  }

  /** Whether the editor's text is another one than the file's. */
  get dirty(): Store<boolean> {
    return this.#dirty
  }

  /** How often somebody wanted to save in a conflict, which only their choice ends. */
  get asked(): Store<number> {
    return this.#asked
  }

  /** The text in the editor. */
  get text(): FileText {
    return this.#text
  }

  get isDirty(): boolean {
    const state = this.#state.get()
    return state.is === 'text' && !this.#text.equals(state.base)
  }

  /** The editor's text has changed. */
  edited(text: FileText): void {
    this.#text = text
    this.#compare()
    this.#endNeedless()
  }

  /** An input method begins or ends to put a word together. What the disk has is taken in after it. */
  compose(isComposing: boolean): void {
    if (isComposing) this.#word ??= Promise.withResolvers()
    else {
      this.#word?.resolve()
      this.#word = undefined
      this.#endNeedless()
    }
  }

  /** Goes back to the file as it was last read or written. */
  discard(): void {
    const state = this.#state.get()
    if (state.is === 'text') this.#showText(state.base, state.etag)
  }

  /** The page is about to move it. */
  beginMove(): void {
    this.#isMoving = true
  }

  /** It was moved there, or stays where it was. What is typed and not saved stays as it is. */
  async endMove(there?: { readonly access: FileAccess; readonly path: string }): Promise<void> {
    this.#isMoving = false
    if (there !== undefined) {
      this.#access = there.access
      this.#path = there.path
    }
    await this.refresh()
  }

  async load(opensLarge = false): Promise<void> {
    this.#opensLarge ||= opensLarge
    this.#loads += 1
    const load = this.#loads
    const show = (state: () => void): void => {
      if (load === this.#loads) state()
    }
    try {
      const { size } = await this.#access.stat()
      if (this.#canOpen(size)) {
        const version = await this.#read()
        show(() => (isOutgrown(version) ? this.#showLarge(version) : this.#show(version)))
      } else show(() => this.#showLarge({ sizeBytes: size }))
    } catch (caught) {
      show(() =>
        this.#state.set({
          is: 'failed',
          message: messageOf(caught),
          isMissing: findFileProblem(caught) === 'gone',
        }),
      )
    }
  }

  /** Reads the file unless it is larger than may be opened; it can grow between two requests. */
  #read(): Promise<FileVersion | OutgrownFile> {
    return this.#access.read((sizeBytes) => this.#canOpen(sizeBytes))
  }

  #showLarge({ sizeBytes }: Pick<OutgrownFile, 'sizeBytes'>): void {
    this.#state.set({ is: 'large', sizeBytes, canOpen: sizeBytes <= MAX_OPEN_BYTES })
  }

  #canOpen(sizeBytes: number): boolean {
    if (sizeBytes > MAX_OPEN_BYTES) return false
    return sizeBytes <= MAX_EDIT_BYTES || this.#opensLarge || imageType(this.#path) !== undefined
  }

  /** Writes the text unless the file is another one by now; then both are kept, and the person is asked. */
  async save(): Promise<void> {
    // What was typed since a save began needs one of its own.
    while (this.#saving !== undefined) await this.#settle()
    if (this.#textState?.theirs !== undefined) this.#asked.set(this.#asked.get() + 1)
    else if (this.isDirty) await this.#hold(() => this.#saveOver())
  }

  /** Ends a conflict: with what is in the editor, over the version that was seen. */
  async keepMine(): Promise<void> {
    while (this.#saving !== undefined) await this.#settle()
    const theirs = this.#textState?.theirs
    if (theirs === undefined) return
    await this.#hold(async () => {
      if (!(await this.#write(typeof theirs === 'string' ? 'new' : { etag: theirs.etag })))
        await this.#takeIn()
    })
  }

  /** Ends a conflict: with what is in the file. */
  async takeTheirs(): Promise<void> {
    const theirs = this.#textState?.theirs
    if (theirs === undefined) return
    if (theirs === 'gone') this.#state.set({ is: 'failed', message: fileTexts.pane.deleted, isMissing: true })
    else if (typeof theirs === 'string' || theirs.text === undefined) await this.load()
    else this.#showText(theirs.text, theirs.etag)
  }

  /** Ends a conflict in which nothing is left of what the person typed, or nothing that is not on the disk as well. */
  #endNeedless(): void {
    const { theirs, isSaving } = this.#textState ?? {}
    if (typeof theirs !== 'object' || theirs.text === undefined) return
    if (isSaving === true || this.#word !== undefined) return
    if (!this.isDirty || theirs.text.equals(this.#text)) this.#showText(theirs.text, theirs.etag)
  }

  /** The file may have changed: looks, and takes it over if nothing would be lost by that. */
  refresh(): Promise<void> {
    return this.#refetch.run()
  }

  async #refreshOnce(): Promise<void> {
    // What changes during a save is most likely the save itself.
    await this.#settle()
    const state = this.#state.get()
    if (state.is === 'text') await this.#takeIn()
    else if (state.is !== 'loading') await this.load()
  }

  /** Waits for the end of saves; whoever waited longer may have begun another one by then. */
  async #settle(): Promise<void> {
    while (this.#saving !== undefined) await this.#saving.catch(() => undefined)
  }

  /** Runs a save, which others wait for. */
  async #hold(save: () => Promise<void>): Promise<void> {
    this.#saving = save()
    try {
      await this.#saving
    } finally {
      this.#saving = undefined
    }
  }

  async #saveOver(): Promise<void> {
    const etag = this.#textState?.etag
    if (etag === undefined || (await this.#write({ etag }))) return
    await this.#takeIn()
    // Another version with the same text, as a moved file is, is written over.
    const now = this.#textState
    if (now !== undefined && now.theirs === undefined && now.etag !== etag && this.isDirty)
      await this.#saveOver()
  }

  /** Writes the text; answers whether the file was the one it is believed to be. */
  async #write(condition: { readonly etag: string } | 'new'): Promise<boolean> {
    const text = this.#text
    const before = this.#unanswered
    this.#saves += 1
    this.#unanswered = [...before, text].slice(-MAX_UNANSWERED)
    this.#change({ isSaving: true })
    try {
      const etag = await this.#access.write(text.toString(), condition)
      this.#unanswered = []
      this.#state.set({ is: 'text', base: text, etag, isSaving: false })
      return true
    } catch (caught) {
      this.#change({ isSaving: false })
      if (!(caught instanceof ApiError) || isUnreachable(caught)) throw caught
      this.#unanswered = before
      if (caught.code === 'file_changed' || findFileProblem(caught) !== undefined) return false
      throw caught
    }
  }

  /** Sees what the file is now, and brings it together with what is here. */
  async #takeIn(): Promise<void> {
    const saves = this.#saves
    const seen = await this.#see()
    while (this.#word !== undefined) await this.#word.promise
    // It may be older than what was written since.
    if (saves !== this.#saves) return this.#refreshOnce()
    const state = this.#textState
    if (state === undefined) return undefined
    if (isOutgrown(seen)) this.#mergeOutgrown(seen)
    else if (typeof seen === 'object') this.#merge(state, seen)
    else if (seen === 'base') this.#change({ theirs: undefined })
    else if (seen !== undefined) this.#change({ theirs: seen })
    return this.#endNeedless()
  }

  /** What the file is now; undefined when that is known, or cannot be told. */
  async #see(): Promise<FileVersion | OutgrownFile | 'base' | FileProblem | undefined> {
    try {
      const { etag } = await this.#access.stat()
      const state = this.#textState
      if (etag === state?.etag) return 'base'
      const isKnown = typeof state?.theirs === 'object' && state.theirs.etag === etag
      return isKnown ? undefined : await this.#read()
    } catch (caught) {
      return this.#isMoving ? undefined : findFileProblem(caught)
    }
  }

  /** The file has become too large to open. Unsaved text is kept, as beside a file that is no text any more. */
  #mergeOutgrown(file: OutgrownFile): void {
    if (this.isDirty) this.#change({ theirs: { text: undefined, etag: file.etag } })
    else this.#showLarge(file)
  }

  #merge({ base }: TextState, version: FileVersion): void {
    const { etag } = version
    const text = textIn(version)
    const has = (known: FileText): boolean => text?.equals(known) === true
    if (!this.isDirty || has(this.#text)) this.#show(version)
    else if (has(base)) this.#change({ etag, theirs: undefined })
    // A save came through of which nothing was heard.
    else if (text !== undefined && this.#unanswered.some(has))
      this.#change({ base: text, etag, theirs: undefined })
    else this.#change({ theirs: { text, etag } })
  }

  get #textState(): TextState | undefined {
    const state = this.#state.get()
    return state.is === 'text' ? state : undefined
  }

  /** Changes what is known of a text, on top of all that is known by now. */
  #change(change: Partial<Omit<TextState, 'theirs'>> & { readonly theirs?: Theirs | undefined }): void {
    const state = this.#textState
    if (state === undefined) return
    const { theirs, ...next } = { ...state, ...change }
    this.#state.set(theirs === undefined ? next : { ...next, theirs })
  }

  #compare(): void {
    const { isDirty } = this
    if (this.#dirty.get() !== isDirty) this.#dirty.set(isDirty)
  }

  #show(version: FileVersion): void {
    const { bytes, etag } = version
    const type = imageType(this.#path)
    const text = type === undefined || isDrawing(this.#path) ? textIn(version) : undefined
    if (text !== undefined) this.#showText(text, etag)
    else if (type !== undefined) this.#state.set({ is: 'image', type, bytes })
    else this.#state.set({ is: 'binary', sizeBytes: bytes.byteLength, head: bytes.slice(0, HEX_BYTES) })
  }

  #showText(text: FileText, etag: string): void {
    this.#text = text
    this.#state.set({ is: 'text', base: text, etag, isSaving: false })
  }
}
