/** Between two checks whether the client of a stream is still authorized. */
const RECHECK_MS = 5_000

/** A client that watches a run through a stream that control itself sends. */
export interface Watcher {
  /** Throws when the client may no longer watch: its grant was revoked, or its sign-in has ended. */
  readonly recheck: () => Promise<void>
  /** To be called once, when the stream has ended. */
  readonly end: () => void
}

/** Ends a stream whose client is no longer authorized. Returns a function that ends the checks, and the watcher. */
export function recheckWhileOpen(
  watcher: Watcher,
  close: () => void,
  sleep: (ms: number) => Promise<void>,
): () => void {
  let isOpen = true
  const check = async (): Promise<void> => {
    await sleep(RECHECK_MS)
    while (isOpen) {
      await watcher.recheck()
      await sleep(RECHECK_MS)
    }
  }
  void check().catch(() => {
    if (isOpen) close()
  })
  return () => {
    isOpen = false
    watcher.end()
  }
}
