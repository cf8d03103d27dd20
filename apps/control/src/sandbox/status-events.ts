import type { RestoredFiles } from '../versions/version-store.ts'
import type { SavedState } from './file-versions.ts'

/** What happens to the files of a sandbox. The names are part of the API. */
export type StatusEvent =
  | { readonly event: 'sync_state'; readonly data: Omit<SavedState, 'restored'> }
  /** A save succeeded after several had failed. */
  | { readonly event: 'sync_recovered'; readonly data: { readonly savedMs: number } }
  | {
      readonly event: 'restore_started'
      readonly data: { readonly version: number; readonly savedMs: number }
    }
  /** Progress, in segments. */
  | { readonly event: 'restoring'; readonly data: { readonly done: number; readonly total: number } }
  | { readonly event: 'restored'; readonly data: RestoredFiles }
  /** The sandbox has started with the files that it had. */
  | { readonly event: 'restore_skipped'; readonly data: Readonly<Record<string, never>> }
  | { readonly event: 'restore_failed'; readonly data: { readonly code: string } }

/** The event in one word, as conversations show it. */
export function statusOf({ event, data }: StatusEvent): string {
  return event === 'sync_state' ? data.state : event
}

type Listener = (event: StatusEvent) => void

/** Delivers status events to everything that shows them. A listener must not throw. */
export class StatusEvents {
  readonly #listeners = new Set<Listener>()

  emit(event: StatusEvent): void {
    for (const listener of this.#listeners) listener(event)
  }

  /** Returns what ends the subscription. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
