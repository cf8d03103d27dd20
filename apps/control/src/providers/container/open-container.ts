import { SandwireError } from '@sandwire/protocol'
import type { Provider } from '../provider.ts'
import type { ContainerStore } from './container-store.ts'
import { ContainerProvider } from './container.ts'
import type { Engine } from './engine.ts'
import { type Interceptor, openNetwork, type Surroundings } from './open-network.ts'

/** What a sandbox's object lends the provider of its container. */
export interface ObjectPlace extends Surroundings<Fetcher> {
  /** `ctx.container`; undefined where the class has none. */
  readonly container: (Engine & Interceptor<Fetcher>) | undefined
  readonly store: ContainerStore
  readonly hold: (work: Promise<unknown>) => void
  readonly onLost: () => void
  readonly onStuck: () => void
}

/** The provider of an object's own container. */
export function openContainer(
  { container, store, hold, onLost, onStuck, ...around }: ObjectPlace,
  { nowMs, sleep }: { readonly nowMs: () => number; readonly sleep: (ms: number) => Promise<void> },
): Provider {
  if (container === undefined)
    throw new SandwireError('provider_unavailable', 'Cannot make sandboxes: this server has no containers')
  return new ContainerProvider({
    engine: container,
    store,
    nowMs,
    sleep,
    hold,
    onLost,
    onStuck,
    hasInternet: around.hasInternet,
    openNetwork: (network) => openNetwork(container, network, around),
    mintEpoch: () => crypto.randomUUID(),
  })
}
