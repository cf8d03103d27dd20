import { createStore, type Store } from '@sandwire/client'

/** An id as control mints it; whatever else stands for a sandbox is its name. */
const ID = /^[0-9a-z]{32}$/

export type Names = Readonly<Record<string, string>>

/** What to call a sandbox that is known by its id or its name. An id itself tells nobody anything. */
export function nameSandbox(sandbox: string, names: Names, isGuest: boolean): string {
  const known = names[sandbox]
  if (known !== undefined) return known
  if (!ID.test(sandbox)) return sandbox
  return isGuest ? 'A shared sandbox' : 'Unknown sandbox'
}

interface ToldOfSandbox {
  readonly sandboxName?: string
  readonly owner?: string
}

/** What others call theirs is told only to whom they share all of it; others know it by its owner. */
function nameShared(told: ToldOfSandbox): string | undefined {
  return told.sandboxName ?? (told.owner === undefined ? undefined : `Sandbox of ${told.owner}`)
}

/** What sandboxes are called, by their ids: also those that are gone, and those of which only a session is known. */
export class SandboxNames {
  readonly #names = createStore<Names>({})

  get all(): Store<Names> {
    return this.#names
  }

  learn(sandbox: string, name: string): void {
    if (this.#names.get()[sandbox] !== name) this.#names.set({ ...this.#names.get(), [sandbox]: name })
  }

  /** Learns what is told of a session or a grant; that is less than what a list of sandboxes tells. */
  learnShared(sandbox: string, told: ToldOfSandbox): void {
    const name = nameShared(told)
    const isBetter = told.sandboxName !== undefined || this.#names.get()[sandbox] === undefined
    if (name !== undefined && isBetter) this.learn(sandbox, name)
  }
}
