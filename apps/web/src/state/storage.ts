import { EMPTY, type Layout } from '../layout/layout.ts'
import { readLayout, writeLayout } from '../layout/stored-layout.ts'

/** `localStorage` or `sessionStorage`. */
export type TextStorage = Pick<Storage, 'getItem' | 'setItem'>

/** Stores a text if possible. */
export function storeText(storage: TextStorage, key: string, text: string): void {
  try {
    storage.setItem(key, text)
  } catch {
    // Storage is full or forbidden; the text is only missing after a reload.
  }
}

const LAYOUT_KEY = 'sandwire.layout'
/** The account that the stored layout belongs to. */
const ACCOUNT_KEY = 'sandwire.account'

/**
 * Stores a window's layout twice: in its own storage, from which a reload restores it, and in the storage shared by
 * all windows, from which a new window starts.
 */
export class LayoutStorage {
  readonly #shared: TextStorage
  readonly #own: TextStorage
  /** The account whose layout this window shows. */
  #account: string | null

  constructor(shared: TextStorage, own: TextStorage) {
    this.#shared = shared
    this.#own = own
    this.#account = this.#first.getItem(ACCOUNT_KEY)
  }

  /** The storage that a window starts from. */
  get #first(): TextStorage {
    return this.#own.getItem(LAYOUT_KEY) === null ? this.#shared : this.#own
  }

  read(): Layout {
    return readLayout(this.#first.getItem(LAYOUT_KEY))
  }

  write(layout: Layout): void {
    const text = writeLayout(layout)
    storeText(this.#own, LAYOUT_KEY, text)
    // Another account may have signed in from another window.
    if (this.#shared.getItem(ACCOUNT_KEY) === this.#account) storeText(this.#shared, LAYOUT_KEY, text)
  }

  /**
   * Switches to an account. Returns the layout to start with if the window showed another account's: the stored one,
   * or an empty one.
   */
  switchAccount(account: string): Layout | undefined {
    const isShared = this.#shared.getItem(ACCOUNT_KEY) === account
    const theirs = isShared ? readLayout(this.#shared.getItem(LAYOUT_KEY)) : EMPTY
    const begin = this.#account === account ? undefined : theirs
    const shown = begin ?? this.read()
    this.#account = account
    for (const storage of [this.#own, this.#shared]) storeText(storage, ACCOUNT_KEY, account)
    // Another account's layout is erased; the layouts of this account's other windows are left alone.
    if (isShared) storeText(this.#own, LAYOUT_KEY, writeLayout(shown))
    else this.write(shown)
    return begin
  }
}
