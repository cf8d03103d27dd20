import type { Author } from '../api/git.ts'
import type { TextStorage } from '../state/workbench.ts'

/** Texts kept per key; the oldest are dropped first. */
const MAX_TEXTS = 50
/** Maximum length of a commit message. */
const MAX_CHARS = 64 * 1024

type Texts = Readonly<Record<string, string>>

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/**
 * Texts by name in browser storage, for one account. Texts of another account are never returned and are overwritten.
 */
export class AccountTexts {
  readonly #storage: TextStorage
  readonly #key: string
  readonly #account: string

  constructor(storage: TextStorage, key: string, account: string) {
    this.#storage = storage
    this.#key = key
    this.#account = account
  }

  read(name: string): string | undefined {
    return this.#readAll()[name]
  }

  /** An empty text removes the entry. */
  store(name: string, text: string): void {
    const { [name]: _, ...others } = this.#readAll()
    const texts = text === '' ? others : { ...others, [name]: text.slice(0, MAX_CHARS) }
    const stored = Object.fromEntries(Object.entries(texts).slice(-MAX_TEXTS))
    try {
      this.#storage.setItem(this.#key, JSON.stringify({ account: this.#account, texts: stored }))
    } catch {
      // Storage is full or forbidden; the text is only lost on reload.
    }
  }

  #readAll(): Texts {
    try {
      const stored: unknown = JSON.parse(this.#storage.getItem(this.#key) ?? 'null')
      if (!isRecord(stored) || stored['account'] !== this.#account || !isRecord(stored['texts'])) return {}
      const texts = Object.entries(stored['texts'])
      return Object.fromEntries(texts.filter((pair): pair is [string, string] => typeof pair[1] === 'string'))
    } catch {
      // Corrupt entries count as absent.
      return {}
    }
  }
}

const AUTHOR_KEY = 'sandwire.author'

/** True when git accepts the author: no angle brackets or line breaks. */
export function isAuthor({ name, email }: Author): boolean {
  return [name, email].every((text) => text.trim() !== '' && !/[<>\p{Cc}]/u.test(text))
}

/** The author this account last used in this browser. */
export function readAuthor(storage: TextStorage, account: string): Author | undefined {
  try {
    const stored: unknown = JSON.parse(storage.getItem(AUTHOR_KEY) ?? 'null')
    if (!isRecord(stored) || stored['account'] !== account) return undefined
    const { name, email } = stored
    if (typeof name !== 'string' || typeof email !== 'string') return undefined
    return isAuthor({ name, email }) ? { name, email } : undefined
  } catch {
    // Corrupt entries count as absent.
    return undefined
  }
}

export function storeAuthor(storage: TextStorage, account: string, { name, email }: Author): void {
  try {
    storage.setItem(AUTHOR_KEY, JSON.stringify({ account, name, email }))
  } catch {
    // Storage is full or forbidden; the user types the name again.
  }
}
