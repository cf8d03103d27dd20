import { createStore, type Store } from '@sandwire/client'
import { storeText, type TextStorage } from '../state/storage.ts'

/** Messages that wait for the server; further ones are refused. */
const MAX_UNSENT = 50
const KEY = 'sandwire.unsent.'

/** A message that the server has not acknowledged. */
export interface UnsentMessage {
  readonly id: string
  readonly text: string
  /** It waits for the end of the agent's turn. */
  readonly whenIdle: boolean
  /** Why the server refused it; it is not sent again by itself. */
  readonly problem?: string
}

function isUnsent(value: unknown): value is UnsentMessage {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    typeof value.id === 'string' &&
    'text' in value &&
    typeof value.text === 'string' &&
    'whenIdle' in value &&
    typeof value.whenIdle === 'boolean'
  )
}

function parse(text: string | null): readonly UnsentMessage[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(value) ? value.filter(isUnsent).slice(0, MAX_UNSENT) : []
  } catch {
    // Not written by this page.
    return []
  }
}

/** Messages of one conversation on their way to the server, kept across reloads of the page. */
export class UnsentMessages {
  readonly #storage: TextStorage
  readonly #key: string
  readonly #all

  constructor(storage: TextStorage, conversation: string) {
    this.#storage = storage
    this.#key = KEY + conversation
    this.#all = createStore(parse(storage.getItem(this.#key)))
  }

  get all(): Store<readonly UnsentMessage[]> {
    return this.#all
  }

  /** False when too many wait. */
  add(message: UnsentMessage): boolean {
    const others = this.#all.get().filter(({ id }) => id !== message.id)
    if (others.length >= MAX_UNSENT) return false
    this.#set([...others, message])
    return true
  }

  /** False for an id that is not of a message. */
  refuse(id: string, problem: string): boolean {
    const all = this.#all.get()
    if (!all.some((message) => message.id === id)) return false
    this.#set(all.map((message) => (message.id === id ? { ...message, problem } : message)))
    return true
  }

  remove(id: string): void {
    this.#set(this.#all.get().filter((message) => message.id !== id))
  }

  #set(all: readonly UnsentMessage[]): void {
    this.#all.set(all)
    storeText(this.#storage, this.#key, JSON.stringify(all))
  }
}
