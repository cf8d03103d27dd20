import type { Author } from '../api/git.ts'
import type { TextStorage } from '../state/workbench.ts'

/** More than anybody works on at once; the oldest go first. */
const MAX_TEXTS = 50
/** The longest message that git is given. */
const MAX_CHARS = 64 * 1024

type Texts = Readonly<Record<string, string>>

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Texts by name that a browser keeps for one account. What another account left there is neither given nor kept. */
export class AccountTexts {
  readonly #shelf: TextStorage
  readonly #key: string
  readonly #account: string

  constructor(shelf: TextStorage, key: string, account: string) {
    this.#shelf = shelf
    this.#key = key
    this.#account = account
  }

  read(name: string): string | undefined {
    return this.#readAll()[name]
  }

  /** An empty text is none. */
  keep(name: string, text: string): void {
    const { [name]: _, ...others } = this.#readAll()
    const texts = text === '' ? others : { ...others, [name]: text.slice(0, MAX_CHARS) }
    const kept = Object.fromEntries(Object.entries(texts).slice(-MAX_TEXTS))
    try {
      this.#shelf.setItem(this.#key, JSON.stringify({ account: this.#account, texts: kept }))
    } catch {
      // A full or forbidden storage costs the text after a reload, nothing else.
    }
  }

  #readAll(): Texts {
    try {
      const kept: unknown = JSON.parse(this.#shelf.getItem(this.#key) ?? 'null')
      if (!isRecord(kept) || kept['account'] !== this.#account || !isRecord(kept['texts'])) return {}
      const texts = Object.entries(kept['texts'])
      return Object.fromEntries(texts.filter((pair): pair is [string, string] => typeof pair[1] === 'string'))
    } catch {
      // What cannot be read was never kept.
      return {}
    }
  }
}

const AUTHOR_KEY = 'sandwire.author'

/** Whether git can write a commit under this name: it has no place for angle brackets and line ends. */
export function isAuthor({ name, email }: Author): boolean {
  return [name, email].every((text) => text.trim() !== '' && !/[<>\p{Cc}]/u.test(text))
}

/** Who this account last committed as in this browser. What another account wrote there is not its business. */
export function readAuthor(shelf: TextStorage, account: string): Author | undefined {
  try {
    const kept: unknown = JSON.parse(shelf.getItem(AUTHOR_KEY) ?? 'null')
    if (!isRecord(kept) || kept['account'] !== account) return undefined
    const { name, email } = kept
    if (typeof name !== 'string' || typeof email !== 'string') return undefined
    return isAuthor({ name, email }) ? { name, email } : undefined
  } catch {
    // What cannot be read is asked for again.
    return undefined
  }
}

export function storeAuthor(shelf: TextStorage, account: string, { name, email }: Author): void {
  try {
    shelf.setItem(AUTHOR_KEY, JSON.stringify({ account, name, email }))
  } catch {
    // A full or forbidden storage costs typing it again, nothing else.
  }
}
