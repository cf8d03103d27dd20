import { isRecord } from './json.ts'

/** Stands for a secret. */
export const REDACTED = '[redacted]'
/** Shorter texts would be found by chance. */
const MIN_SECRET_CHARS = 8
/** Deeper values are dropped. */
const MAX_DEPTH = 24

/** Replaces secrets in texts. */
export class Redactor {
  /** Longest first, so that a secret that contains another is replaced whole. */
  readonly #secrets: readonly string[]

  constructor(secrets: readonly string[]) {
    const usable = secrets.filter((secret) => secret.length >= MIN_SECRET_CHARS)
    this.#secrets = [...new Set(usable)].sort((a, b) => b.length - a.length)
  }

  text(text: string): string {
    let out = text
    for (const secret of this.#secrets) if (out.includes(secret)) out = out.replaceAll(secret, REDACTED)
    return out
  }

  /** A JSON value with every key and text redacted. */
  value(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return this.text(value)
    if (typeof value !== 'object' || value === null) return value
    if (depth >= MAX_DEPTH) return null
    if (Array.isArray(value)) return value.map((item: unknown) => this.value(item, depth + 1))
    if (!isRecord(value)) return null
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [this.text(key), this.value(item, depth + 1)]),
    )
  }

  /** Length of the end of a text that may be the beginning of a secret. */
  heldChars(text: string): number {
    let held = 0
    for (const secret of this.#secrets) {
      const most = Math.min(secret.length - 1, text.length)
      for (let length = most; length > held; length -= 1)
        if (text.endsWith(secret.slice(0, length))) held = length
    }
    return held
  }
}

/** Redacts a text that comes in pieces, where a secret may be divided between two. */
export class StreamRedactor {
  readonly #redactor: Redactor
  #held = ''

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** What can be shown now. */
  push(piece: string): string {
    const text = this.#redactor.text(this.#held + piece)
    const shown = text.length - this.#redactor.heldChars(text)
    this.#held = text.slice(shown)
    return text.slice(0, shown)
  }

  /** The rest, at the end of the text. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest
  }
}
