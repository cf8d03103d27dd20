import { createStore, type Store } from '@sandwire/client'
import { printable } from '@sandwire/react'
import { announceSignIn, type User, readUser } from '../api/identity.ts'
import { ApiError, isUnreachable } from '../api/request.ts'
import { listSandboxes, type Sandbox } from '../api/sandboxes.ts'
import { EMPTY, focusedView, type Layout, type MintId } from '../layout/layout.ts'
import { SandboxNames } from './sandbox-names.ts'
import { readSettings, type Settings } from './settings.ts'
import { storeText, LayoutStorage, type TextStorage } from './storage.ts'

export type { TextStorage } from './storage.ts'

/** A value that is loaded asynchronously. */
export type Loaded<T> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'ready'; readonly value: T }
  | { readonly kind: 'failed'; readonly message: string }

/** A temporary message. */
export interface Notice {
  readonly id: string
  readonly kind: 'info' | 'error'
  readonly text: string
  /** An action offered with the message. */
  readonly action?: { readonly label: string; readonly run: () => void }
}

/** A modal overlay. */
type Overlay = 'commands' | 'files' | 'keys' | 'settings' | 'usage'

const SETTINGS_KEY = 'sandwire.settings'
/** Id of the open panel; empty: none. */
const PANEL_KEY = 'sandwire.panel'
/** Poll interval of the list of sandboxes while the page is visible. */
const REFRESH_MS = 10_000
/** Poll interval while the server is unreachable. */
const AWAY_REFRESH_MS = 3_000
const NOTICE_MS = 8_000
const MAX_NOTICES = 5
const MAX_NOTICE_CHARS = 400

/** The state of the page, outside React. */
export class Workbench {
  readonly #storage: TextStorage
  readonly #layoutStorage: LayoutStorage
  readonly #user = createStore<Loaded<User | undefined>>({ kind: 'loading' })
  readonly #sandboxes = createStore<Loaded<readonly Sandbox[]>>({ kind: 'loading' })
  readonly names: SandboxNames
  readonly #isOffline = createStore(false)
  readonly #layout = createStore<Layout>(EMPTY)
  readonly #settings
  readonly #panel = createStore<string | undefined>('sandboxes')
  readonly #overlay = createStore<Overlay | undefined>(undefined)
  readonly #renaming = createStore<string | undefined>(undefined)
  readonly #current = createStore<string | undefined>(undefined)
  readonly #notices = createStore<readonly Notice[]>([])
  /** Messages shown by `notifyOnce`. */
  readonly #shownOnce = new Set<string>()
  #isChecking = false

  /** `own` is the storage of this window alone. */
  constructor(storage: TextStorage, own: TextStorage = storage) {
    this.#storage = storage
    this.#layoutStorage = new LayoutStorage(storage, own)
    this.names = new SandboxNames(storage)
    this.#settings = createStore(readSettings(storage.getItem(SETTINGS_KEY)))
    this.#layout.set(this.#layoutStorage.read())
    const panel = storage.getItem(PANEL_KEY)
    if (panel !== null) this.#panel.set(panel === '' ? undefined : panel)
  }

  /** The signed-in user, or undefined. */
  get user(): Store<Loaded<User | undefined>> {
    return this.#user
  }

  get sandboxes(): Store<Loaded<readonly Sandbox[]>> {
    return this.#sandboxes
  }

  /** True while the server is unreachable and the known state may be stale. */
  get isOffline(): Store<boolean> {
    return this.#isOffline
  }

  get layout(): Store<Layout> {
    return this.#layout
  }

  get settings(): Store<Settings> {
    return this.#settings
  }

  /** The open panel, or undefined. */
  get panel(): Store<string | undefined> {
    return this.#panel
  }

  get overlay(): Store<Overlay | undefined> {
    return this.#overlay
  }

  /** The tab being renamed. */
  get renaming(): Store<string | undefined> {
    return this.#renaming
  }

  /** Id of the sandbox that the panels show. */
  get current(): Store<string | undefined> {
    return this.#current
  }

  get notices(): Store<readonly Notice[]> {
    return this.#notices
  }

  mint: MintId = () => crypto.randomUUID()

  /** The panels follow the sandbox of the focused view. */
  changeLayout(change: (layout: Layout) => Layout): void {
    const before = focusedView(this.#layout.get())?.sandbox
    this.#layout.set(change(this.#layout.get()))
    this.#layoutStorage.write(this.#layout.get())
    if (focusedView(this.#layout.get())?.sandbox !== before) this.#follow()
  }

  changeSettings(part: Partial<Settings>): void {
    this.#settings.set({ ...this.#settings.get(), ...part })
    storeText(this.#storage, SETTINGS_KEY, JSON.stringify(this.#settings.get()))
  }

  showPanel(panel: string | undefined): void {
    this.#panel.set(panel)
    storeText(this.#storage, PANEL_KEY, panel ?? '')
  }

  /** Hides the panel without storing that. */
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

  /** Shows a message and returns its id. */
  notify(kind: Notice['kind'], text: string, action?: Notice['action']): string {
    // Server messages may contain file names.
    const shown = printable(text, MAX_NOTICE_CHARS)
    const notice = { id: this.mint(), kind, text: shown, ...(action === undefined ? {} : { action }) }
    this.#notices.set([...this.#notices.get(), notice].slice(-MAX_NOTICES))
    setTimeout(() => this.dismiss(notice.id), NOTICE_MS)
    return notice.id
  }

  /** Shows a message only the first time. */
  notifyOnce(text: string, action?: Notice['action']): void {
    if (this.#shownOnce.has(text)) return
    this.#shownOnce.add(text)
    this.notify('info', text, action)
  }

  dismiss(id: string): void {
    this.#notices.set(this.#notices.get().filter((notice) => notice.id !== id))
  }

  /** Runs an operation and shows a notice if it fails. */
  async attempt<T>(what: string, run: () => Promise<T>): Promise<T | undefined> {
    try {
      return await run()
    } catch (caught) {
      this.notify('error', formatFailure(what, caught))
      return undefined
    }
  }

  /** Loads the user and the sandboxes, then polls until aborted. */
  async open(signal: AbortSignal): Promise<void> {
    try {
      const value = await readUser()
      if (value !== undefined) this.#switchAccount(value)
      this.#user.set({ kind: 'ready', value })
      if (value !== undefined) announceSignIn()
    } catch (caught) {
      this.#user.set({ kind: 'failed', message: messageOf(caught) })
      return
    }
    await this.refreshSandboxes()
    if (!signal.aborted) this.#pollSandboxes(signal)
  }

  #pollSandboxes(signal: AbortSignal): void {
    const refresh = async (): Promise<void> => {
      if (!document.hidden) await this.refreshSandboxes()
    }
    const again = (): void => {
      if (signal.aborted) return
      setTimeout(() => void refresh().then(again), this.#isOffline.get() ? AWAY_REFRESH_MS : REFRESH_MS)
    }
    again()
    document.addEventListener('visibilitychange', () => void refresh(), { signal })
    window.addEventListener('online', () => void refresh(), { signal })
  }

  /**
   * Called after a 401 or a revocation: the user may be signed out. A guest without any grant is signed out too, but
   * keeps the page, which says so.
   */
  async recheckUser(): Promise<void> {
    const user = this.#user.get()
    if (user.kind === 'ready' && user.value?.guest !== true) await this.checkUser()
  }

  /** Checks whether the same user is still signed in, and updates the page if not. */
  async checkUser(): Promise<void> {
    const known = this.#user.get()
    if (this.#isChecking || known.kind !== 'ready') return
    this.#isChecking = true
    try {
      const value = await readUser()
      if (value?.account === known.value?.account) return
      this.#sandboxes.set({ kind: 'loading' })
      this.#current.set(undefined)
      if (value !== undefined) this.#switchAccount(value)
      this.#user.set({ kind: 'ready', value })
      await this.refreshSandboxes()
    } catch {
      // An unreachable server says nothing about the sign-in; the next request tells.
    } finally {
      this.#isChecking = false
    }
  }

  /** True when a sandbox with this id or name may exist. */
  mightExist(sandbox: string): boolean {
    const known = this.#sandboxes.get()
    return known.kind !== 'ready' || known.value.some(({ id, name }) => id === sandbox || name === sandbox)
  }

  async refreshSandboxes(): Promise<void> {
    const user = this.#user.get()
    if (user.kind !== 'ready' || user.value === undefined) return
    // The response may arrive after another account signed in.
    const isSame = (): boolean => this.#user.get() === user
    try {
      const value = await listSandboxes()
      if (!isSame()) return
      this.#sandboxes.set({ kind: 'ready', value })
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
      // Keeps the known sandboxes; reports the error only if there are none.
      if (this.#sandboxes.get().kind !== 'ready')
        this.#sandboxes.set({ kind: 'failed', message: messageOf(caught) })
    }
  }

  /** Selects the sandbox of the focused view, if it is known. */
  #follow(): void {
    const sandbox = focusedView(this.#layout.get())?.sandbox
    const sandboxes = this.#sandboxes.get()
    const known = sandboxes.kind === 'ready' ? sandboxes.value : []
    const found = known.find(({ id, name }) => id === sandbox || name === sandbox)
    if (found !== undefined) this.#current.set(found.id)
  }

  /** What another account had open is neither shown nor kept. */
  #switchAccount({ account }: User): void {
    const layout = this.#layoutStorage.switchAccount(account)
    if (layout === undefined) return
    this.names.clear()
    this.changeLayout(() => layout)
  }
}

/** Says what failed and why. Error messages of the server already name the operation. */
export function formatFailure(what: string, caught: unknown): string {
  const isFromServer = caught instanceof ApiError && caught.status >= 400 && caught.code !== 'unknown'
  return isFromServer ? caught.message : `${what}: ${messageOf(caught)}`
}

export function messageOf(caught: unknown): string {
  return caught instanceof Error ? caught.message : String(caught)
}
