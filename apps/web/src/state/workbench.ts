import { createStore, type Store } from '@sandwire/client'
import { printable } from '@sandwire/react'
import { type Person, whoAmI } from '../api/identity.ts'
import { listSandboxes, type Sandbox } from '../api/sandboxes.ts'
import { EMPTY, type Layout, type MintId } from '../layout/layout.ts'
import { readLayout, writeLayout } from '../layout/stored-layout.ts'
import { readSettings, type Settings } from './settings.ts'

/** What is not yet known, known, or could not be learned. */
export type Loaded<T> =
  | { readonly is: 'loading' }
  | { readonly is: 'ready'; readonly value: T }
  | { readonly is: 'failed'; readonly message: string }

/** Something to tell for a moment. */
export interface Notice {
  readonly id: string
  readonly kind: 'info' | 'error'
  readonly text: string
}

/** What lies over the page. */
export type Overlay = 'commands' | 'files' | 'keys' | 'settings'

/** The places of a browser that keep text. */
export type Shelf = Pick<Storage, 'getItem' | 'setItem'>

const LAYOUT_KEY = 'sandwire.layout'
const SETTINGS_KEY = 'sandwire.settings'
/** Whose layout is kept. */
const ACCOUNT_KEY = 'sandwire.account'
/** How often the list of sandboxes is asked for while somebody looks. */
const REFRESH_MS = 10_000
const NOTICE_MS = 8_000
const MAX_NOTICES = 5
const MAX_NOTICE_CHARS = 400

/** Everything the page knows, outside of what draws it. */
export class Workbench {
  readonly #shelf: Shelf
  readonly #person = createStore<Loaded<Person | undefined>>({ is: 'loading' })
  readonly #sandboxes = createStore<Loaded<readonly Sandbox[]>>({ is: 'loading' })
  readonly #layout = createStore<Layout>(EMPTY)
  readonly #settings
  readonly #panel = createStore<string | undefined>('sandboxes')
  readonly #overlay = createStore<Overlay | undefined>(undefined)
  readonly #renaming = createStore<string | undefined>(undefined)
  readonly #current = createStore<string | undefined>(undefined)
  readonly #notices = createStore<readonly Notice[]>([])

  constructor(shelf: Shelf) {
    this.#shelf = shelf
    this.#settings = createStore(readSettings(shelf.getItem(SETTINGS_KEY)))
    this.#layout.set(readLayout(shelf.getItem(LAYOUT_KEY)))
  }

  /** Who is signed in; undefined: nobody. */
  get person(): Store<Loaded<Person | undefined>> {
    return this.#person
  }

  get sandboxes(): Store<Loaded<readonly Sandbox[]>> {
    return this.#sandboxes
  }

  get layout(): Store<Layout> {
    return this.#layout
  }

  get settings(): Store<Settings> {
    return this.#settings
  }

  /** The panel beside the panes; undefined: none. */
  get panel(): Store<string | undefined> {
    return this.#panel
  }

  get overlay(): Store<Overlay | undefined> {
    return this.#overlay
  }

  /** The tab that is being given a name. */
  get renaming(): Store<string | undefined> {
    return this.#renaming
  }

  /** Id of the sandbox whose files, git and search are shown. */
  get current(): Store<string | undefined> {
    return this.#current
  }

  get notices(): Store<readonly Notice[]> {
    return this.#notices
  }

  mint: MintId = () => crypto.randomUUID()

  changeLayout(change: (layout: Layout) => Layout): void {
    this.#layout.set(change(this.#layout.get()))
    this.#keep(LAYOUT_KEY, writeLayout(this.#layout.get()))
  }

  changeSettings(part: Partial<Settings>): void {
    this.#settings.set({ ...this.#settings.get(), ...part })
    this.#keep(SETTINGS_KEY, JSON.stringify(this.#settings.get()))
  }

  showPanel(panel: string | undefined): void {
    this.#panel.set(panel)
  }

  showOverlay(overlay: Overlay | undefined): void {
    this.#overlay.set(overlay)
  }

  startRename(tab: string | undefined): void {
    this.#renaming.set(tab)
  }

  choose(sandbox: string | undefined): void {
    this.#current.set(sandbox)
  }

  tell(kind: Notice['kind'], text: string): void {
    // A server's words may hold the names of files.
    const notice = { id: this.mint(), kind, text: printable(text, MAX_NOTICE_CHARS) }
    this.#notices.set([...this.#notices.get(), notice].slice(-MAX_NOTICES))
    setTimeout(() => this.dismiss(notice.id), NOTICE_MS)
  }

  dismiss(id: string): void {
    this.#notices.set(this.#notices.get().filter((notice) => notice.id !== id))
  }

  /** Runs something that may be refused, and tells when it was. */
  async attempt<T>(what: string, run: () => Promise<T>): Promise<T | undefined> {
    try {
      return await run()
    } catch (caught) {
      this.tell('error', `${what}: ${messageOf(caught)}`)
      return undefined
    }
  }

  /** Learns who is here and what is theirs, and goes on asking until aborted. */
  async open(signal: AbortSignal): Promise<void> {
    try {
      const value = await whoAmI()
      if (value !== undefined) this.#welcome(value)
      this.#person.set({ is: 'ready', value })
    } catch (caught) {
      this.#person.set({ is: 'failed', message: messageOf(caught) })
      return
    }
    await this.refreshSandboxes()
    const timer = setInterval(() => {
      if (!document.hidden) void this.refreshSandboxes()
    }, REFRESH_MS)
    signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  /** Whether a sandbox of an id or name is there, as far as is known. */
  mayExist(sandbox: string): boolean {
    const known = this.#sandboxes.get()
    return known.is !== 'ready' || known.value.some(({ id, name }) => id === sandbox || name === sandbox)
  }

  async refreshSandboxes(): Promise<void> {
    const person = this.#person.get()
    if (person.is !== 'ready' || person.value === undefined) return
    try {
      const value = await listSandboxes()
      this.#sandboxes.set({ is: 'ready', value })
      const current = this.#current.get()
      if (!value.some(({ id }) => id === current)) this.#current.set(value[0]?.id)
    } catch (caught) {
      // What was known stays on the page; only a page that knows nothing says so.
      if (this.#sandboxes.get().is !== 'ready')
        this.#sandboxes.set({ is: 'failed', message: messageOf(caught) })
    }
  }

  /** What somebody else had open in this browser is neither shown nor kept. */
  #welcome({ account }: Person): void {
    if (this.#shelf.getItem(ACCOUNT_KEY) !== account) this.changeLayout(() => EMPTY)
    this.#keep(ACCOUNT_KEY, account)
  }

  #keep(key: string, text: string): void {
    try {
      this.#shelf.setItem(key, text)
    } catch {
      // A full or forbidden storage costs the layout after a reload, nothing else.
    }
  }
}

export function messageOf(caught: unknown): string {
  return caught instanceof Error ? caught.message : String(caught)
}
