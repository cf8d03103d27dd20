import type { Store } from '@sandwire/client'
import { useSyncExternalStore } from 'react'

/** Subscribes a component to a store. */
export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(
    (listener) => store.subscribe(listener),
    () => store.get(),
  )
}
