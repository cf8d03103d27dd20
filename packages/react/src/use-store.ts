import type { Store } from '@sandwire/client'
import { useSyncExternalStore } from 'react'

/** The value of a store, and a new drawing whenever it changes. */
export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(
    (listener) => store.subscribe(listener),
    () => store.get(),
  )
}
