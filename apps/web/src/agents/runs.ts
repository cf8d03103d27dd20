import { createStore, type Store } from '@sandwire/client'
import { listRuns, type Run } from '../api/runs.ts'
import { agentTexts } from '../texts/agents.ts'
import { type Loaded, messageOf } from '../state/workbench.ts'

const REFRESH_MS = 4_000

/** Runs that wait for a person, and did not in an earlier list. */
export function newlyWaiting(before: readonly Run[], now: readonly Run[]): readonly Run[] {
  const waiting = new Set(before.filter(({ state }) => state === 'awaiting').map(({ id }) => id))
  return now.filter(({ id, state }) => state === 'awaiting' && !waiting.has(id))
}

/** The account's runs, newest first. */
export class Runs {
  readonly #all = createStore<Loaded<readonly Run[]>>({ kind: 'loading' })
  readonly #onWaiting: (run: Run) => void
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(onWaiting: (run: Run) => void) {
    this.#onWaiting = onWaiting
  }

  get all(): Store<Loaded<readonly Run[]>> {
    return this.#all
  }

  /** Reads the list now, and regularly while a run is at work. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer)
    const before = this.#all.get()
    try {
      const value = await listRuns()
      this.#all.set({ kind: 'ready', value })
      if (before.kind === 'ready') for (const run of newlyWaiting(before.value, value)) this.#onWaiting(run)
    } catch (caught) {
      if (before.kind !== 'ready') this.#all.set({ kind: 'failed', message: messageOf(caught) })
    }
    const runs = this.#all.get()
    clearTimeout(this.#timer)
    if (runs.kind === 'ready' && runs.value.some(({ state }) => state !== 'ended'))
      this.#timer = setTimeout(() => void this.refresh(), REFRESH_MS)
  }
}

/** Also outside the page, if it is hidden and the user has allowed it. */
export function notifyOutside(run: Run): void {
  if (!document.hidden || !('Notification' in globalThis) || Notification.permission !== 'granted') return
  new Notification(agentTexts.waits, { body: run.task.slice(0, 200), tag: run.id })
}
