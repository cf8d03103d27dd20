import { createStore, type Store } from '@sandwire/client'
import { activeTab, type Layout } from '../layout/layout.ts'
import { leavesOf } from '../layout/pane-tree.ts'

function isInFront(layout: Layout, view: string): boolean {
  const tab = activeTab(layout)
  return tab !== undefined && leavesOf(tab.panes).includes(view)
}

/** The inactive panes whose bell rang. */
export class Bells {
  readonly #rung = createStore<ReadonlySet<string>>(new Set())

  get rung(): Store<ReadonlySet<string>> {
    return this.#rung
  }

  ring(layout: Layout, view: string): void {
    if (isInFront(layout, view) || this.#rung.get().has(view)) return
    this.#rung.set(new Set([...this.#rung.get(), view]))
  }

  /** Clears the bells of visible and closed panes. */
  seen(layout: Layout): void {
    const rung = this.#rung.get()
    const left = [...rung].filter((view) => layout.views[view] !== undefined && !isInFront(layout, view))
    if (left.length < rung.size) this.#rung.set(new Set(left))
  }
}
