import { useStore } from '@sandwire/react'
import { createContext, useContext } from 'react'
import type { TreePanel } from '../files/file-tree.ts'
import type { GitPanelState } from '../git/changes.tsx'
import type { Search } from '../search/search.ts'
import { useParts } from '../state/context.ts'

/** Sandboxes whose panel state is kept. */
const MAX_SANDBOXES = 8

/** A map that drops the entries that were not used for longest. */
export class RecentMap<T> {
  readonly #entries = new Map<string, T>()

  /** Returns the entry of this name, creating it if necessary. */
  getOrCreate(name: string, make: () => T): T {
    const entry = this.#entries.get(name) ?? make()
    // Reinserting moves the entry to the end of the map.
    this.#entries.delete(name)
    this.#entries.set(name, entry)
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > MAX_SANDBOXES && oldest !== undefined) this.#entries.delete(oldest)
    return entry
  }

  clear(): void {
    this.#entries.clear()
  }
}

/** The state of the panels for each sandbox, for the life of the page. */
export class PanelMemory {
  readonly trees = new RecentMap<TreePanel>()
  readonly searches = new RecentMap<Search>()
  readonly git = new RecentMap<GitPanelState>()
  #account: string | undefined

  /** State of another account is dropped. */
  setAccount(account: string): void {
    if (this.#account === account) return
    this.#account = account
    for (const states of [this.trees, this.searches, this.git]) states.clear()
  }
}

export const PanelMemoryContext = createContext<PanelMemory | undefined>(undefined)

/** The panel state of the signed-in user. */
export function usePanelMemory(): PanelMemory {
  const { workbench } = useParts()
  const user = useStore(workbench.user)
  const memory = useContext(PanelMemoryContext)
  if (memory === undefined) throw new Error('The page was drawn without a memory for its panels')
  memory.setAccount(user.kind === 'ready' ? (user.value?.account ?? '') : '')
  return memory
}
