/**
 * How long a server may be silent once the browser says that there is no network. It is asked at all because it may be on this
 * machine, where it needs none.
 */
const OFFLINE_MS = 500
/** The same once there is a network again, which may be another one: the connection belongs to the old one then. */
const ONLINE_MS = 3_000

/** Says within which time the server has to be heard, whenever the network of this machine comes or goes; until the answer is called. */
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
