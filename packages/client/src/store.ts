import { reportError } from './report-error.ts'

/** A value that can be read and watched, outside any framework. */
export interface Store<T> {
  get(): T
  /** Calls `listener` after every change until the returned function is called. */
  subscribe(listener: (value: T) => void): () => void
}

export interface WritableStore<T> extends Store<T> {
  set(value: T): void
}

/** `onError` gets what listeners throw; the other listeners are called all the same. */
export function createStore<T>(
  initial: T,
  onError: (error: unknown) => void = reportError,
): WritableStore<T> {
  let current = initial
  const listeners = new Set<(value: T) => void>()
  return {
    get: () => current,
    set(value) {
      current = value
      for (const listener of Array.from(listeners)) {
        try {
          listener(value)
        } catch (error) {
          onError(error)
        }
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
