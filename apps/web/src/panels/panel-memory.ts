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
  readonly #things = new Map<string, T>()

  /** Returns the entry of this name, creating it if necessary. */
  recall(name: string, make: () => T): T {
    const thing = this.#things.get(name) ?? make()
    // Reinserting moves the entry to the end of the map.
    this.#things.delete(name)
    this.#things.set(name, thing)
    const [oldest] = this.#things.keys()
    if (this.#things.size > MAX_SANDBOXES && oldest !== undefined) this.#things.delete(oldest)
    return thing
  }

  forget(): void {
    this.#things.clear()
  }
}

/** The state of the panels for each sandbox, for the life of the page. */
export class PanelMemory {
  readonly trees = new RecentMap<TreePanel>()
  readonly searches = new RecentMap<Search>()
  readonly git = new RecentMap<GitPanelState>()
  #account: string | undefined

  /** State of another account is dropped. */
  belongTo(account: string): void {
    if (this.#account === account) return
    this.#account = account
    for (const kept of [this.trees, this.searches, this.git]) kept.forget()
  }
}

export const PanelMemoryContext = createContext<PanelMemory | undefined>(undefined)

/** The panel state of the signed-in user. */
export function usePanelMemory(): PanelMemory {
  const { workbench } = useParts()
  const person = useStore(workbench.person)
  const memory = useContext(PanelMemoryContext)
  if (memory === undefined) throw new Error('The page was drawn without a memory for its panels')
  memory.belongTo(person.is === 'ready' ? (person.value?.account ?? '') : '')
  return memory
}
