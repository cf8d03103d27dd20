import { SandwireError } from '@sandwire/protocol'
import type { Provider } from '../provider.ts'
import type { ExecStore } from '../sprites/exec-store.ts'
import type { ContainerStore } from './container-store.ts'
import { type ContainerEngine, ContainerProvider } from './container.ts'
import { type Interceptor, type NetworkContext, openNetwork } from './open-network.ts'

/** What a sandbox's object passes to the provider of its container. */
export interface ContainerContext extends NetworkContext<Fetcher> {
  /** Id of the sandbox. */
  readonly sandbox: () => string
  readonly execs: ExecStore
  /** Has the object's alarm fire at this time or sooner. */
  readonly wakeBy: (atMs: number) => void
  /** `ctx.container`; undefined where the class has none. */
  readonly container: (ContainerEngine & Interceptor<Fetcher>) | undefined
  readonly store: ContainerStore
  readonly savesFiles: boolean
  readonly hold: (work: Promise<unknown>) => void
  readonly onLost: () => void
  readonly onStuck: () => void
}

/** The provider of an object's own container. */
export function openContainer(
  { container, store, savesFiles, hold, onLost, onStuck, ...networkContext }: ContainerContext,
  { nowMs, sleep }: { readonly nowMs: () => number; readonly sleep: (ms: number) => Promise<void> },
): Provider {
  if (container === undefined)
    throw new SandwireError(
      'provider_unavailable',
      'Cannot create sandboxes: containers are not configured on this server',
    )
  return new ContainerProvider({
    engine: container,
    store,
    savesFiles,
    nowMs,
    sleep,
    hold,
    onLost,
    onStuck,
    hasInternet: networkContext.hasInternet,
    openNetwork: (network) => openNetwork(container, network, networkContext),
    mintEpoch: () => crypto.randomUUID(),
  })
}
