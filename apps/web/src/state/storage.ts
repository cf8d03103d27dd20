import { EMPTY, type Layout } from '../layout/layout.ts'
import { readLayout, writeLayout } from '../layout/stored-layout.ts'

/** The places of a browser that keep text. */
export type TextStorage = Pick<Storage, 'getItem' | 'setItem'>

/** Puts a text away, where there is room for it. */
export function keep(shelf: TextStorage, key: string, text: string): void {
  try {
    shelf.setItem(key, text)
  } catch {
    // A full or forbidden storage costs what is found after a reload, nothing else.
  }
}

const LAYOUT_KEY = 'sandwire.layout'
/** Whose layout is kept. */
const ACCOUNT_KEY = 'sandwire.account'

/**
 * Where the layout of a window is kept: on a shelf of its own, which it finds again after a reload, and on the one that all windows of the
 * browser share, which a new window begins with.
 */
export class LayoutStorage {
  readonly #shared: TextStorage
  readonly #own: TextStorage
  /** Who had open what this window shows. */
  #account: string | null

  constructor(shared: TextStorage, own: TextStorage) {
    this.#shared = shared
    this.#own = own
    this.#account = this.#first.getItem(ACCOUNT_KEY)
  }

  /** The shelf that a window begins with. */
  get #first(): TextStorage {
    return this.#own.getItem(LAYOUT_KEY) === null ? this.#shared : this.#own
  }

  read(): Layout {
    return readLayout(this.#first.getItem(LAYOUT_KEY))
  }

  write(layout: Layout): void {
    const text = writeLayout(layout)
    keep(this.#own, LAYOUT_KEY, text)
    // Participant else may have come in another window since.
    if (this.#shared.getItem(ACCOUNT_KEY) === this.#account) keep(this.#shared, LAYOUT_KEY, text)
  }

  /**
   * Keeps for a person from now on. Answers what they begin with where this window was somebody else's: what is kept of theirs, if
   * anything is.
   */
  welcome(account: string): Layout | undefined {
    const isShared = this.#shared.getItem(ACCOUNT_KEY) === account
    const theirs = isShared ? readLayout(this.#shared.getItem(LAYOUT_KEY)) : EMPTY
    const begin = this.#account === account ? undefined : theirs
    const shown = begin ?? this.read()
    this.#account = account
    for (const shelf of [this.#own, this.#shared]) keep(shelf, ACCOUNT_KEY, account)
    // What somebody else had open is kept nowhere; what others of this person's windows have is left to them.
    if (isShared) keep(this.#own, LAYOUT_KEY, writeLayout(shown))
    else this.write(shown)
    return begin
  }
}
