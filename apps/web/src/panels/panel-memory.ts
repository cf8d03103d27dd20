import { useStore } from '@sandwire/react'
import { createContext, useContext } from 'react'
import type { TreePanel } from '../files/file-tree.ts'
import type { GitPanelState } from '../git/changes.tsx'
import type { Search } from '../search/search.ts'
import { useParts } from '../state/context.ts'

/** What is kept of one kind: that of more sandboxes than anybody goes to and fro between. */
const MAX_SANDBOXES = 8

/** Things by name, of which those that nobody asked for longest are dropped. */
export class RecentMap<T> {
  readonly #things = new Map<string, T>()

  /** The thing of this name, which is made when there is none. */
  recall(name: string, make: () => T): T {
    const thing = this.#things.get(name) ?? make()
    // The last of a map is the one that was put there last.
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

/** How somebody left the panels of each sandbox, for as long as the page is open. */
export class PanelMemory {
  readonly trees = new RecentMap<TreePanel>()
  readonly searches = new RecentMap<Search>()
  readonly git = new RecentMap<GitPanelState>()
  #account: string | undefined

  /** What another account left is neither given nor kept. */
  belongTo(account: string): void {
    if (this.#account === account) return
    this.#account = account
    for (const kept of [this.trees, this.searches, this.git]) kept.forget()
  }
}

export const PanelMemoryContext = createContext<PanelMemory | undefined>(undefined)

/** How the person who is signed in left the panels. */
export function usePanelMemory(): PanelMemory {
  const { workbench } = useParts()
  const person = useStore(workbench.person)
  const memory = useContext(PanelMemoryContext)
  if (memory === undefined) throw new Error('The page was drawn without a memory for its panels')
  memory.belongTo(person.is === 'ready' ? (person.value?.account ?? '') : '')
  return memory
}
