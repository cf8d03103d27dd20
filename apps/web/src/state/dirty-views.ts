import { createStore, type Store } from '@sandwire/client'

/** Unsaved text in a pane. */
export interface Unsaved {
  readonly sandbox: string
  readonly path: string
  /** Returns true when it is saved. */
  save(): Promise<boolean>
  discard(): void
}

type LeaveAnswer = 'save' | 'discard' | 'cancel'

/** A pending decision about unsaved text. */
interface LeaveQuestion {
  readonly paths: readonly string[]
  readonly answer: (answer: LeaveAnswer) => void
}

/** The panes with unsaved text. Whatever closes a pane goes through `leave`. */
export class DirtyViews {
  readonly #views = createStore<ReadonlyMap<string, Unsaved>>(new Map())
  readonly #question = createStore<LeaveQuestion | undefined>(undefined)

  get views(): Store<ReadonlyMap<string, Unsaved>> {
    return this.#views
  }

  get question(): Store<LeaveQuestion | undefined> {
    return this.#question
  }

  /** Undefined: nothing is unsaved. */
  set(viewId: string, unsaved: Unsaved | undefined): void {
    const views = new Map(this.#views.get())
    if (unsaved !== undefined) views.set(viewId, unsaved)
    else if (!views.delete(viewId)) return
    this.#views.set(views)
  }

  /** Runs `then` at once if nothing is unsaved, and otherwise after the user saved or discarded. */
  async leave(viewIds: readonly string[], then: () => void): Promise<void> {
    const unsaved = viewIds.flatMap((viewId) => this.#views.get().get(viewId) ?? [])
    if (unsaved.length === 0) return then()
    const answer = await this.#ask(unsaved.map(({ path }) => path))
    if (answer === 'cancel') return undefined
    for (const one of unsaved) {
      if (answer === 'discard') one.discard()
      else if (!(await one.save())) return undefined
    }
    return then()
  }

  #ask(paths: readonly string[]): Promise<LeaveAnswer> {
    this.#question.get()?.answer('cancel')
    return new Promise((resolve) => {
      this.#question.set({
        paths,
        answer: (answer) => {
          this.#question.set(undefined)
          resolve(answer)
        },
      })
    })
  }
}
