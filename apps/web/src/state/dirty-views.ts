import { createStore, type Store } from '@sandwire/client'

/** The panes with something that is not saved. */
export class DirtyViews {
  readonly #views = createStore<ReadonlySet<string>>(new Set())

  get views(): Store<ReadonlySet<string>> {
    return this.#views
  }

  set(viewId: string, isDirty: boolean): void {
    if (this.#views.get().has(viewId) === isDirty) return
    const views = new Set(this.#views.get())
    if (isDirty) views.add(viewId)
    else views.delete(viewId)
    this.#views.set(views)
  }

  forget(viewId: string): void {
    this.set(viewId, false)
  }
}
