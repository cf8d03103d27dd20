import { createStore, type Store } from '@sandwire/client'
import { ApiError } from '../api/request.ts'
import { readFile, statFile, writeFile } from '../api/workspace.ts'
import { messageOf } from '../state/workbench.ts'
import { HEX_BYTES } from './hex.ts'
import { imageType, MAX_EDIT_BYTES, MAX_OPEN_BYTES, textOf } from './file-kind.ts'

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
      readonly base: string
      readonly etag: string
      readonly isSaving: boolean
      /** The file became another one underneath; without a text it is none any more. */
      readonly theirs?: { readonly text: string | undefined; readonly etag: string } | 'gone'
    }

/** What a file needs of the server. */
export interface FileAccess {
  stat(): Promise<{ readonly size: number; readonly etag: string }>
  read(): Promise<{ readonly bytes: Uint8Array; readonly etag: string }>
  write(text: string, condition: { readonly etag: string } | 'new' | 'any'): Promise<string>
}

export function accessTo(sandbox: string, path: string): FileAccess {
  return {
    stat: () => statFile(sandbox, path),
    read: () => readFile(sandbox, path),
    write: (text, condition) => writeFile(sandbox, path, text, condition),
  }
}

function isMissing(caught: unknown): boolean {
  return caught instanceof ApiError && caught.code === 'file_not_found'
}

/**
 * A file in an editor: which version its text comes from, and what became of the file meanwhile. Nothing is ever written over a
 * version that the person has not seen.
 */
export class OpenFile {
  #access: FileAccess
  #path: string
  readonly #state = createStore<FileState>({ is: 'loading' })
  readonly #dirty = createStore(false)
  /** The text in the editor; told by it. */
  #text = ''
  /** The page moves it: that it is not in its place says nothing. */
  #isMoving = false
  /** A save that is under way. */
  #saving: Promise<void> | undefined

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

  /** The text in the editor. */
  get text(): string {
    return this.#text
  }

  get isDirty(): boolean {
    const state = this.#state.get()
    return state.is === 'text' && this.#text !== state.base
  }

  /** The editor's text has changed. */
  edited(text: string): void {
    this.#text = text
    this.#compare()
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
    try {
      const { size } = await this.#access.stat()
      if (
        size > MAX_OPEN_BYTES ||
        (size > MAX_EDIT_BYTES && !opensLarge && imageType(this.#path) === undefined)
      ) {
        this.#state.set({ is: 'large', sizeBytes: size, canOpen: size <= MAX_OPEN_BYTES })
        return
      }
      this.#show(await this.#access.read())
    } catch (caught) {
      this.#state.set({ is: 'failed', message: messageOf(caught), isMissing: isMissing(caught) })
    }
  }

  /** Writes the text unless the file is another one by now; then both are kept, and the person decides. */
  async save(): Promise<void> {
    // What was typed since a save began needs one of its own.
    await this.#saving?.catch(() => undefined)
    if (!this.isDirty) return
    this.#saving = this.#write()
    try {
      await this.#saving
    } finally {
      this.#saving = undefined
    }
  }

  async #write(): Promise<void> {
    const state = this.#state.get()
    if (state.is !== 'text') return
    const text = this.#text
    this.#state.set({ ...state, isSaving: true })
    try {
      const etag = await this.#access.write(text, { etag: state.etag })
      this.#state.set({ is: 'text', base: text, etag, isSaving: false })
    } catch (caught) {
      this.#state.set({ ...state, isSaving: false })
      if (
        !(caught instanceof ApiError) ||
        (caught.code !== 'file_changed' && caught.code !== 'file_not_found')
      )
        throw caught
      await this.refresh()
      // Another version with the same text, as a moved file is, is written over.
      const now = this.#state.get()
      if (now.is === 'text' && now.theirs === undefined && now.etag !== state.etag && this.isDirty)
        await this.#write()
    }
  }

  /** The file may have changed: looks, and takes it over if nothing would be lost by that. */
  async refresh(): Promise<void> {
    const state = this.#state.get()
    if (state.is !== 'text') {
      if (state.is !== 'loading') await this.load()
      return
    }
    try {
      const { etag } = await this.#access.stat()
      if (etag === state.etag) return this.#comeBack(etag)
      const version = await this.#access.read()
      if (version.etag === this.#textEtag()) return
      const text = textOf(version.bytes)
      if (!this.isDirty || text === this.#text) this.#show(version)
      else if (text === state.base) this.#comeBack(version.etag)
      else this.#state.set({ ...state, theirs: { text, etag: version.etag } })
    } catch (caught) {
      if (!isMissing(caught) || this.#isMoving) return
      this.#state.set({ ...state, theirs: 'gone' })
    }
  }

  /** Ends a conflict: with what is in the editor, over the version that was seen. */
  async keepMine(text = this.#text): Promise<void> {
    const state = this.#state.get()
    if (state.is !== 'text' || state.theirs === undefined) return
    this.#text = text
    const condition = state.theirs === 'gone' ? 'new' : { etag: state.theirs.etag }
    try {
      const etag = await this.#access.write(text, condition)
      this.#state.set({ is: 'text', base: text, etag, isSaving: false })
    } catch (caught) {
      if (!(caught instanceof ApiError) || caught.code !== 'file_changed') throw caught
      await this.refresh()
    }
  }

  /** Ends a conflict: with what is in the file. */
  async takeTheirs(): Promise<void> {
    const state = this.#state.get()
    if (state.is !== 'text' || state.theirs === undefined) return
    if (state.theirs === 'gone')
      this.#state.set({ is: 'failed', message: 'The file was removed', isMissing: true })
    else if (state.theirs.text === undefined) await this.load()
    else this.#showText(state.theirs.text, state.theirs.etag)
  }

  #compare(): void {
    if (this.#dirty.get() !== this.isDirty) this.#dirty.set(this.isDirty)
  }

  /** The file has the text it had, whatever was believed of it. */
  #comeBack(etag: string): void {
    const state = this.#state.get()
    if (state.is !== 'text' || (state.theirs === undefined && state.etag === etag)) return
    this.#state.set({ is: 'text', base: state.base, etag, isSaving: state.isSaving })
  }

  #textEtag(): string | undefined {
    const state = this.#state.get()
    return state.is === 'text' ? state.etag : undefined
  }

  #show({ bytes, etag }: { readonly bytes: Uint8Array; readonly etag: string }): void {
    const type = imageType(this.#path)
    const text = type === undefined || type === 'image/svg+xml' ? textOf(bytes) : undefined
    if (text !== undefined) this.#showText(text, etag)
    else if (type !== undefined) this.#state.set({ is: 'image', type, bytes })
    else this.#state.set({ is: 'binary', sizeBytes: bytes.byteLength, head: bytes.slice(0, HEX_BYTES) })
  }

  #showText(text: string, etag: string): void {
    this.#text = text
    this.#state.set({ is: 'text', base: text, etag, isSaving: false })
  }
}
