import { createStore, type Store } from '@sandwire/client'
import { ApiError, isUnreachable } from '../api/request.ts'
import { type FileVersion, type OutgrownFile, readFile, statFile, writeFile } from '../api/workspace.ts'
import { FileText } from '../editor/file-text.ts'
import { Refetch } from '../state/refetch.ts'
import { messageOf } from '../state/workbench.ts'
import { fileTexts } from '../texts/files.ts'
import { HEX_BYTES, imageType, isDrawing, MAX_EDIT_BYTES, MAX_OPEN_BYTES, textOf } from './file-kind.ts'

/** Server operations on one file. */
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

/** Why a path is not a regular file. */
type FileProblem = 'gone' | 'folder' | 'special'

/** The file on disk after it changed during editing; without a text it is no longer text. */
export type Theirs = { readonly text: FileText | undefined; readonly etag: string } | FileProblem

/** What a pane shows of a file. */
type FileState =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly message: string; readonly isMissing: boolean }
  /** Too large to open without confirmation, or at all. */
  | { readonly kind: 'large'; readonly sizeBytes: number; readonly canOpen: boolean }
  | { readonly kind: 'binary'; readonly sizeBytes: number; readonly head: Uint8Array }
  | { readonly kind: 'image'; readonly type: string; readonly bytes: Uint8Array }
  | {
      readonly kind: 'text'
      /** The last version read or written, which the editor's text is compared with. */
      readonly base: FileText
      readonly etag: string
      readonly isSaving: boolean
      /** Set while the file on disk conflicts with the editor's text. */
      readonly theirs?: Theirs
    }

export type TextState = Extract<FileState, { kind: 'text' }>

/** Error codes for paths that are not a regular file. */
const CODES: Readonly<Record<string, FileProblem>> = {
  file_not_found: 'gone',
  // The parent folder is gone.
  not_a_folder: 'gone',
  is_a_folder: 'folder',
  special_file: 'special',
}

/** Why a file could not be read or written; undefined for other errors. */
function findFileProblem(caught: unknown): FileProblem | undefined {
  return caught instanceof ApiError ? CODES[caught.code] : undefined
}

/** Bounds the unanswered saves that are remembered. */
const MAX_UNANSWERED = 8

function textIn({ bytes }: FileVersion): FileText | undefined {
  const text = textOf(bytes)
  return text === undefined ? undefined : FileText.of(text)
}

/**
 * A file in an editor: the version its text is based on, and the file on disk. A version that the user has not seen
 * is never overwritten. Any state may change during an `await`, so a state read before one is never written back.
 */
export class OpenFile {
  #access: FileAccess
  #path: string
  readonly #state = createStore<FileState>({ kind: 'loading' })
  readonly #dirty = createStore(false)
  readonly #saveAttempts = createStore(0)
  /** The text in the editor. */
  #text = FileText.of('')
  /** True while the page moves the file, when a missing file means nothing. */
  #isMoving = false
  /** The save in progress. */
  #saving: Promise<void> | undefined
  /** Saves started so far. A version read before a save may be older than what it wrote. */
  #saves = 0
  /** Texts sent in saves that got no response: the file may hold one of them. */
  #unanswered: readonly FileText[] = []
  /** Loads started so far; only the latest counts. */
  #loads = 0
  /** The user confirmed opening a large file. */
  #opensLarge = false
  /** Pending while an input method composes a word, which replacing the view would interrupt. */
  #composition: PromiseWithResolvers<void> | undefined
  /** Changes during a refresh may be newer than what it reads, so they cause another one. */
  readonly #refetch = new Refetch(() => this.#refreshOnce())

  constructor(access: FileAccess, path: string) {
    this.#access = access
    this.#path = path
    this.#state.subscribe(() => this.#compare())
  }

  get state(): Store<FileState> {
    return this.#state
  }

  /** True when the editor's text differs from the file. */
  get dirty(): Store<boolean> {
    return this.#dirty
  }

  /** Counts attempts to save during a conflict. */
  get saveAttempts(): Store<number> {
    return this.#saveAttempts
  }

  /** The text in the editor. */
  get text(): FileText {
    return this.#text
  }

  get isDirty(): boolean {
    const state = this.#state.get()
    return state.kind === 'text' && !this.#text.equals(state.base)
  }

  /** Called by the editor on every change. */
  edited(text: FileText): void {
    this.#text = text
    this.#compare()
    this.#endResolvedConflict()
  }

  /** Called when an input method starts or ends composing. Changes on disk are applied afterwards. */
  compose(isComposing: boolean): void {
    if (isComposing) this.#composition ??= Promise.withResolvers()
    else {
      this.#composition?.resolve()
      this.#composition = undefined
      this.#endResolvedConflict()
    }
  }

  /** Reverts to the version last read or written. */
  discard(): void {
    const state = this.#state.get()
    if (state.kind === 'text') this.#showText(state.base, state.etag)
  }

  /** Called before the page moves the file. */
  beginMove(): void {
    this.#isMoving = true
  }

  /** Called after a move, with the new location unless it failed. Unsaved text is kept. */
  async endMove(target?: { readonly access: FileAccess; readonly path: string }): Promise<void> {
    this.#isMoving = false
    if (target !== undefined) {
      this.#access = target.access
      this.#path = target.path
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
          kind: 'failed',
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
    this.#state.set({ kind: 'large', sizeBytes, canOpen: sizeBytes <= MAX_OPEN_BYTES })
  }

  #canOpen(sizeBytes: number): boolean {
    if (sizeBytes > MAX_OPEN_BYTES) return false
    return sizeBytes <= MAX_EDIT_BYTES || this.#opensLarge || imageType(this.#path) !== undefined
  }

  /** Saves the text, unless the file changed on disk: then both versions are kept and the user chooses. */
  async save(): Promise<void> {
    // Text typed since a save began needs another save.
    while (this.#saving !== undefined) await this.#waitForSave()
    if (this.#textState?.theirs !== undefined) this.#saveAttempts.set(this.#saveAttempts.get() + 1)
    else if (this.isDirty) await this.#runSave(() => this.#saveOver())
  }

  /** Resolves a conflict by saving the editor's text over the version that was shown. */
  async keepMine(): Promise<void> {
    while (this.#saving !== undefined) await this.#waitForSave()
    const theirs = this.#textState?.theirs
    if (theirs === undefined) return
    await this.#runSave(async () => {
      if (!(await this.#write(typeof theirs === 'string' ? 'new' : { etag: theirs.etag })))
        await this.#reconcile()
    })
  }

  /** Resolves a conflict by taking the version on disk. */
  async takeTheirs(): Promise<void> {
    const theirs = this.#textState?.theirs
    if (theirs === undefined) return
    if (theirs === 'gone')
      this.#state.set({ kind: 'failed', message: fileTexts.pane.deleted, isMissing: true })
    else if (typeof theirs === 'string' || theirs.text === undefined) await this.load()
    else this.#showText(theirs.text, theirs.etag)
  }

  /** Ends a conflict when the user's text has no changes left, or equals the version on disk. */
  #endResolvedConflict(): void {
    const { theirs, isSaving } = this.#textState ?? {}
    if (typeof theirs !== 'object' || theirs.text === undefined) return
    if (isSaving === true || this.#composition !== undefined) return
    if (!this.isDirty || theirs.text.equals(this.#text)) this.#showText(theirs.text, theirs.etag)
  }

  /** Checks the file on disk and takes it over if no unsaved text is lost. */
  refresh(): Promise<void> {
    return this.#refetch.run()
  }

  async #refreshOnce(): Promise<void> {
    // A change during a save is most likely the save itself.
    await this.#waitForSave()
    const state = this.#state.get()
    if (state.kind === 'text') await this.#reconcile()
    else if (state.kind !== 'loading') await this.load()
  }

  /** Waits until no save is in progress; another waiter may start the next one first. */
  async #waitForSave(): Promise<void> {
    while (this.#saving !== undefined) await this.#saving.catch(() => undefined)
  }

  /** Runs a save that others wait for. */
  async #runSave(save: () => Promise<void>): Promise<void> {
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
    await this.#reconcile()
    // A new version with the same text, as after a move, may be overwritten.
    const now = this.#textState
    if (now !== undefined && now.theirs === undefined && now.etag !== etag && this.isDirty)
      await this.#saveOver()
  }

  /** Saves the text; false when the file is not the expected version. */
  async #write(condition: { readonly etag: string } | 'new'): Promise<boolean> {
    const text = this.#text
    const before = this.#unanswered
    this.#saves += 1
    this.#unanswered = [...before, text].slice(-MAX_UNANSWERED)
    this.#change({ isSaving: true })
    try {
      const etag = await this.#access.write(text.toString(), condition)
      this.#unanswered = []
      this.#state.set({ kind: 'text', base: text, etag, isSaving: false })
      return true
    } catch (caught) {
      this.#change({ isSaving: false })
      if (!(caught instanceof ApiError) || isUnreachable(caught)) throw caught
      this.#unanswered = before
      if (caught.code === 'file_changed' || findFileProblem(caught) !== undefined) return false
      throw caught
    }
  }

  /** Reads the file on disk and reconciles it with the editor's text. */
  async #reconcile(): Promise<void> {
    const saves = this.#saves
    const onDisk = await this.#readDisk()
    while (this.#composition !== undefined) await this.#composition.promise
    // What was read may be older than a save since.
    if (saves !== this.#saves) return this.#refreshOnce()
    const state = this.#textState
    if (state === undefined) return undefined
    if (isOutgrown(onDisk)) this.#mergeOutgrown(onDisk)
    else if (typeof onDisk === 'object') this.#merge(state, onDisk)
    else if (onDisk === 'base') this.#change({ theirs: undefined })
    else if (onDisk !== undefined) this.#change({ theirs: onDisk })
    return this.#endResolvedConflict()
  }

  /** The file on disk; undefined when it is unchanged or cannot be read. */
  async #readDisk(): Promise<FileVersion | OutgrownFile | 'base' | FileProblem | undefined> {
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
    // A save succeeded whose response was lost.
    else if (text !== undefined && this.#unanswered.some(has))
      this.#change({ base: text, etag, theirs: undefined })
    else this.#change({ theirs: { text, etag } })
  }

  get #textState(): TextState | undefined {
    const state = this.#state.get()
    return state.kind === 'text' ? state : undefined
  }

  /** Updates the text state, based on its current value. */
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
    else if (type !== undefined) this.#state.set({ kind: 'image', type, bytes })
    else this.#state.set({ kind: 'binary', sizeBytes: bytes.byteLength, head: bytes.slice(0, HEX_BYTES) })
  }

  #showText(text: FileText, etag: string): void {
    this.#text = text
    this.#state.set({ kind: 'text', base: text, etag, isSaving: false })
  }
}
