import { createStore, type Store } from '@sandwire/client'
import { sandboxTexts } from '../texts/sandboxes.ts'
import { keep, type TextStorage } from './storage.ts'

const NAMES_KEY = 'sandwire.names'
/** More sandboxes than a person has open; those that were learned first are forgotten. */
const MAX_NAMES = 100

/** An id as control mints it; whatever else stands for a sandbox is its name. */
const ID = /^[0-9a-z]{32}$/

export function isSandboxId(text: string): boolean {
  return ID.test(text)
}

type Names = Readonly<Record<string, string>>

/** What to call a sandbox that is known by its id or its name. An id itself tells nobody anything. */
export function nameSandbox(sandbox: string, names: Names, isGuest: boolean): string {
  const known = names[sandbox]
  if (known !== undefined) return known
  if (!ID.test(sandbox)) return sandbox
  return isGuest ? sandboxTexts.shared : sandboxTexts.unknown
}

interface SharedSandbox {
  readonly sandboxName?: string
  readonly owner?: string
}

/** What others call theirs is told only to whom they share all of it; others know it by its owner. */
function nameShared(told: SharedSandbox): string | undefined {
  return told.sandboxName ?? (told.owner === undefined ? undefined : sandboxTexts.ownedBy(told.owner))
}

function readNames(text: string | null): Names {
  try {
    const kept: unknown = JSON.parse(text ?? '{}')
    if (typeof kept !== 'object' || kept === null) return {}
    const pairs = Object.entries<unknown>({ ...kept })
    return Object.fromEntries(
      pairs.flatMap(([id, name]) => (ID.test(id) && typeof name === 'string' ? [[id, name]] : [])),
    )
  } catch {
    // What cannot be read is learned again.
    return {}
  }
}

/** What sandboxes are called, by their ids: also those that are gone, and those of which only a session is known. */
export class SandboxNames {
  readonly #shelf: TextStorage
  readonly #names

  constructor(shelf: TextStorage) {
    this.#shelf = shelf
    this.#names = createStore<Names>(readNames(shelf.getItem(NAMES_KEY)))
  }

  get all(): Store<Names> {
    return this.#names
  }

  learn(sandbox: string, name: string): void {
    if (this.#names.get()[sandbox] === name) return
    const pairs = Object.entries({ ...this.#names.get(), [sandbox]: name })
    this.#set(Object.fromEntries(pairs.slice(-MAX_NAMES)))
  }

  /** Participant else is here, to whom the names say nothing. */
  forget(): void {
    this.#set({})
  }

  #set(names: Names): void {
    this.#names.set(names)
    keep(this.#shelf, NAMES_KEY, JSON.stringify(names))
  }

  /** Learns what is told of a session or a grant; that is less than what a list of sandboxes tells. */
  learnShared(sandbox: string, told: SharedSandbox): void {
    const name = nameShared(told)
    const isBetter = told.sandboxName !== undefined || this.#names.get()[sandbox] === undefined
    if (name !== undefined && isBetter) this.learn(sandbox, name)
  }
}
