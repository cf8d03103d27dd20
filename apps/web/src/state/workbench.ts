import { createStore, type Store } from '@sandwire/client'
import { printable } from '@sandwire/react'
import { announceSignIn, type User, readUser } from '../api/identity.ts'
import { isUnreachable } from '../api/request.ts'
import { listSandboxes, type Sandbox } from '../api/sandboxes.ts'
import { EMPTY, focusedView, type Layout, type MintId } from '../layout/layout.ts'
import { SandboxNames } from './sandbox-names.ts'
import { readSettings, type Settings } from './settings.ts'
import { keep, LayoutStorage, type TextStorage } from './storage.ts'

export type { TextStorage } from './storage.ts'

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
  /** What can be done about it. */
  readonly action?: { readonly label: string; readonly run: () => void }
}

/** What lies over the page. */
type Overlay = 'commands' | 'files' | 'keys' | 'settings'

const SETTINGS_KEY = 'sandwire.settings'
/** Id of the panel that is open; empty: none. */
const PANEL_KEY = 'sandwire.panel'
/** How often the list of sandboxes is asked for while somebody looks. */
const REFRESH_MS = 10_000
/** How often it is tried again when the server does not answer. */
const AWAY_REFRESH_MS = 3_000
const NOTICE_MS = 8_000
const MAX_NOTICES = 5
const MAX_NOTICE_CHARS = 400

/** Everything the page knows, outside of what draws it. */
export class Workbench {
  readonly #shelf: TextStorage
  readonly #kept: LayoutStorage
  readonly #person = createStore<Loaded<User | undefined>>({ is: 'loading' })
  readonly #sandboxes = createStore<Loaded<readonly Sandbox[]>>({ is: 'loading' })
  readonly names: SandboxNames
  readonly #isOffline = createStore(false)
  readonly #layout = createStore<Layout>(EMPTY)
  readonly #settings
  readonly #panel = createStore<string | undefined>('sandboxes')
  readonly #overlay = createStore<Overlay | undefined>(undefined)
  readonly #renaming = createStore<string | undefined>(undefined)
  readonly #current = createStore<string | undefined>(undefined)
  readonly #notices = createStore<readonly Notice[]>([])
  /** What was told once. */
  readonly #told = new Set<string>()
  #isChecking = false

  /** `own` is what this window alone keeps; default: it is alone. */
  constructor(shelf: TextStorage, own: TextStorage = shelf) {
    this.#shelf = shelf
    this.#kept = new LayoutStorage(shelf, own)
    this.names = new SandboxNames(shelf)
    this.#settings = createStore(readSettings(shelf.getItem(SETTINGS_KEY)))
    this.#layout.set(this.#kept.read())
    const panel = shelf.getItem(PANEL_KEY)
    if (panel !== null) this.#panel.set(panel === '' ? undefined : panel)
  }

  /** Who is signed in; undefined: nobody. */
  get person(): Store<Loaded<User | undefined>> {
    return this.#person
  }

  get sandboxes(): Store<Loaded<readonly Sandbox[]>> {
    return this.#sandboxes
  }

  /** The server does not answer: what is known of sandboxes is how they were. */
  get isOffline(): Store<boolean> {
    return this.#isOffline
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

  /** Files, git and search are of the sandbox that the person goes to. */
  changeLayout(change: (layout: Layout) => Layout): void {
    const before = focusedView(this.#layout.get())?.sandbox
    this.#layout.set(change(this.#layout.get()))
    this.#kept.write(this.#layout.get())
    if (focusedView(this.#layout.get())?.sandbox !== before) this.#follow()
  }

  changeSettings(part: Partial<Settings>): void {
    this.#settings.set({ ...this.#settings.get(), ...part })
    keep(this.#shelf, SETTINGS_KEY, JSON.stringify(this.#settings.get()))
  }

  showPanel(panel: string | undefined): void {
    this.#panel.set(panel)
    keep(this.#shelf, PANEL_KEY, panel ?? '')
  }

  /** Puts the panel away for now; it is there again after a reload where there is room. */
  hidePanel(): void {
    this.#panel.set(undefined)
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

  /** Answers what the notice is dismissed by, before its time. */
  tell(kind: Notice['kind'], text: string, action?: Notice['action']): string {
    // A server's words may hold the names of files.
    const words = printable(text, MAX_NOTICE_CHARS)
    const notice = { id: this.mint(), kind, text: words, ...(action === undefined ? {} : { action }) }
    this.#notices.set([...this.#notices.get(), notice].slice(-MAX_NOTICES))
    setTimeout(() => this.dismiss(notice.id), NOTICE_MS)
    return notice.id
  }

  /** Tells something that is worth knowing the first time. */
  notifyOnce(text: string, action?: Notice['action']): void {
    if (this.#told.has(text)) return
    this.#told.add(text)
    this.tell('info', text, action)
  }

  dismiss(id: string): void {
    this.#notices.set(this.#notices.get().filter((notice) => notice.id !== id))
  }

  /** Runs something that may be refused, and tells when it was. */
  async attempt<T>(what: string, run: () => Promise<T>): Promise<T | undefined> {
    try {
      return await run()
    } catch (caught) {
      this.tell('error', formatFailure(what, messageOf(caught)))
      return undefined
    }
  }

  /** Learns who is here and what is theirs, and goes on asking until aborted. */
  async open(signal: AbortSignal): Promise<void> {
    try {
      const value = await readUser()
      if (value !== undefined) this.#welcome(value)
      this.#person.set({ is: 'ready', value })
      if (value !== undefined) announceSignIn()
    } catch (caught) {
      this.#person.set({ is: 'failed', message: messageOf(caught) })
      return
    }
    await this.refreshSandboxes()
    if (!signal.aborted) this.#pollSandboxes(signal)
  }

  #pollSandboxes(signal: AbortSignal): void {
    const look = async (): Promise<void> => {
      if (!document.hidden) await this.refreshSandboxes()
    }
    const again = (): void => {
      if (signal.aborted) return
      setTimeout(() => void look().then(again), this.#isOffline.get() ? AWAY_REFRESH_MS : REFRESH_MS)
    }
    again()
    document.addEventListener('visibilitychange', () => void look(), { signal })
    window.addEventListener('online', () => void look(), { signal })
  }

  /**
   * Something was refused as it is to nobody, so perhaps nobody is signed in any more. A guest from whom the last share was
   * withdrawn is nobody too, and keeps the page that says so.
   */
  async recheckUser(): Promise<void> {
    const person = this.#person.get()
    if (person.is === 'ready' && person.value?.guest !== true) await this.checkUser()
  }

  /** Looks whether the same person is still signed in, so that the page shows it when not. */
  async checkUser(): Promise<void> {
    const known = this.#person.get()
    if (this.#isChecking || known.is !== 'ready') return
    this.#isChecking = true
    try {
      const value = await readUser()
      if (value?.account === known.value?.account) return
      this.#sandboxes.set({ is: 'loading' })
      this.#current.set(undefined)
      if (value !== undefined) this.#welcome(value)
      this.#person.set({ is: 'ready', value })
      await this.refreshSandboxes()
    } catch {
      // Whoever cannot be asked has not said that anybody is gone; the next answer tells.
    } finally {
      this.#isChecking = false
    }
  }

  /** Whether a sandbox of an id or name is there, as far as is known. */
  mightExist(sandbox: string): boolean {
    const known = this.#sandboxes.get()
    return known.is !== 'ready' || known.value.some(({ id, name }) => id === sandbox || name === sandbox)
  }

  async refreshSandboxes(): Promise<void> {
    const person = this.#person.get()
    if (person.is !== 'ready' || person.value === undefined) return
    // What was asked for as somebody else is nothing to who is here by the time of the answer.
    const isSame = (): boolean => this.#person.get() === person
    try {
      const value = await listSandboxes()
      if (!isSame()) return
      this.#sandboxes.set({ is: 'ready', value })
      this.#isOffline.set(false)
      for (const { id, name } of value) this.names.learn(id, name)
      const current = this.#current.get()
      if (value.some(({ id }) => id === current)) return
      this.#current.set(undefined)
      this.#follow()
      if (this.#current.get() === undefined) this.#current.set(value[0]?.id)
    } catch (caught) {
      if (!isSame()) return
      if (isUnreachable(caught)) this.#isOffline.set(true)
      // What was known stays on the page; only a page that knows nothing says why.
      if (this.#sandboxes.get().is !== 'ready')
        this.#sandboxes.set({ is: 'failed', message: messageOf(caught) })
    }
  }

  /** Chooses the sandbox of the pane with the keyboard, where it is known. */
  #follow(): void {
    const sandbox = focusedView(this.#layout.get())?.sandbox
    const sandboxes = this.#sandboxes.get()
    const known = sandboxes.is === 'ready' ? sandboxes.value : []
    const found = known.find(({ id, name }) => id === sandbox || name === sandbox)
    if (found !== undefined) this.#current.set(found.id)
  }

  /** What somebody else had open in this browser is neither shown nor kept. */
  #welcome({ account }: User): void {
    const layout = this.#kept.welcome(account)
    if (layout === undefined) return
    this.names.forget()
    this.changeLayout(() => layout)
  }
}

/** What failed, and why; a server that says both is not made to say the first twice. */
export function formatFailure(what: string, why: string): string {
  return why.startsWith('Cannot ') ? why : `${what}: ${why}`
}

export function messageOf(caught: unknown): string {
  return caught instanceof Error ? caught.message : String(caught)
}
