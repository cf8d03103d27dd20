import type { HostHealth, NetworkSpec, SandboxLimits } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

type Isolation = HostHealth['isolation']

/** Which settings of a sandbox the isolation enforces. */
interface Capabilities {
  readonly limits: boolean
  readonly network: boolean
  /** For error messages. */
  readonly where: string
}

const CAPABILITIES: Readonly<Record<Isolation, Capabilities>> = {
  bubblewrap: { limits: true, network: true, where: 'sandboxes are isolated' },
  container: { limits: false, network: true, where: 'sandboxes are containers' },
  sprite: { limits: false, network: false, where: 'sandboxes are sprites' },
  none: { limits: false, network: false, where: 'sandboxes are not isolated' },
}

/** Requested settings that need enforcement. */
interface RequestedSettings {
  readonly network?: NetworkSpec | undefined
  readonly limits?: { readonly [L in keyof SandboxLimits]?: number | undefined } | undefined
}

function hasOther(limits: object, defaults: SandboxLimits): boolean {
  return Object.entries(limits).some(([name, value]) => Reflect.get(defaults, name) !== value)
}

/** Clients leave out the field and try again. */
function refuse(field: 'limits' | 'network', problem: string): never {
  throw new SandwireError('bad_request', `Cannot create the sandbox: ${field} ${problem}`, {
    details: { field },
  })
}

/** Throws when a requested setting is not enforced, or not known to be. The isolation is read only if needed. */
export async function checkEnforced(
  { network, limits }: RequestedSettings,
  defaults: SandboxLimits,
  findIsolation: () => Promise<Isolation | null>,
): Promise<void> {
  const policy = network === undefined || network.policy === 'open' ? undefined : network.policy
  const hasLimits = limits !== undefined && hasOther(limits, defaults)
  if (policy === undefined && !hasLimits) return
  const isolation = await findIsolation()
  if (isolation === null)
    throw new SandwireError(
      'provider_unavailable',
      'Cannot create the sandbox: the provider does not respond',
    )
  const able = CAPABILITIES[isolation]
  if (hasLimits && !able.limits) refuse('limits', `cannot be chosen where ${able.where}; leave out limits`)
  if (policy !== undefined && !able.network)
    refuse('network', `cannot be "${policy}" where ${able.where}; leave out network, or choose open`)
}

/** The settings that are enforced: an open network and no limits where the isolation has none. */
export function enforcedSettings(
  { network, limits }: { readonly network: NetworkSpec; readonly limits: SandboxLimits },
  isolation: Isolation | null,
): { network: { policy: NetworkSpec['policy']; allow: string[] }; limits: SandboxLimits | null } {
  const able = isolation === null ? undefined : CAPABILITIES[isolation]
  return {
    network:
      able?.network === false ? { policy: 'open', allow: [] } : { ...network, allow: [...network.allow] },
    limits: able?.limits === false ? null : { ...limits },
  }
}
