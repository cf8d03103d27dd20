/**
 * How long the server may stay silent after the browser went offline. It may run on this machine and stay reachable.
 */
const OFFLINE_MS = 500
/** How long the server may stay silent after the browser came online, when the old connection may be dead. */
const ONLINE_MS = 3_000

/** Probes the server when the browser goes offline or online, until the returned function is called. */
export function watchNetwork(target: EventTarget, probe: (withinMs: number) => void): () => void {
  const onOffline = (): void => probe(OFFLINE_MS)
  const onOnline = (): void => probe(ONLINE_MS)
  target.addEventListener('offline', onOffline)
  target.addEventListener('online', onOnline)
  return () => {
    target.removeEventListener('offline', onOffline)
    target.removeEventListener('online', onOnline)
  }
}
