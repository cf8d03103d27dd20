import { createStore, type Store } from '@sandwire/client'
import { sandboxTexts } from '../texts/sandboxes.ts'
import { storeText, type TextStorage } from './storage.ts'

const NAMES_KEY = 'sandwire.names'
/** Maximum number of names; the oldest are dropped first. */
const MAX_NAMES = 100

/** The format of sandbox ids; anything else is a name. */
const ID = /^[0-9a-z]{32}$/

export function isSandboxId(text: string): boolean {
  return ID.test(text)
}

type Names = Readonly<Record<string, string>>

/** The display name of a sandbox; never its id. */
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

/** Names of other accounts' sandboxes are known only if the whole sandbox is shared. */
function nameShared(shared: SharedSandbox): string | undefined {
  return shared.sandboxName ?? (shared.owner === undefined ? undefined : sandboxTexts.ownedBy(shared.owner))
}

function readNames(text: string | null): Names {
  try {
    const stored: unknown = JSON.parse(text ?? '{}')
    if (typeof stored !== 'object' || stored === null) return {}
    const pairs = Object.entries<unknown>({ ...stored })
    return Object.fromEntries(
      pairs.flatMap(([id, name]) => (ID.test(id) && typeof name === 'string' ? [[id, name]] : [])),
    )
  } catch {
    // Corrupt storage is rebuilt.
    return {}
  }
}

/** Sandbox names by id, including destroyed sandboxes and those of which only a session is known. */
export class SandboxNames {
  readonly #storage: TextStorage
  readonly #names

  constructor(storage: TextStorage) {
    this.#storage = storage
    this.#names = createStore<Names>(readNames(storage.getItem(NAMES_KEY)))
  }

  get all(): Store<Names> {
    return this.#names
  }

  learn(sandbox: string, name: string): void {
    if (this.#names.get()[sandbox] === name) return
    const pairs = Object.entries({ ...this.#names.get(), [sandbox]: name })
    this.#set(Object.fromEntries(pairs.slice(-MAX_NAMES)))
  }

  /** Called when another account signs in. */
  clear(): void {
    this.#set({})
  }

  #set(names: Names): void {
    this.#names.set(names)
    storeText(this.#storage, NAMES_KEY, JSON.stringify(names))
  }

  /** Learns a name from a session or a grant, which is less specific than the list of sandboxes. */
  learnShared(sandbox: string, shared: SharedSandbox): void {
    const name = nameShared(shared)
    const isBetter = shared.sandboxName !== undefined || this.#names.get()[sandbox] === undefined
    if (name !== undefined && isBetter) this.learn(sandbox, name)
  }
}
