import {
  DEFAULT_SANDBOX_LIMITS,
  type HostHealth,
  type NetworkSpec,
  type SandboxLimits,
} from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

type Isolation = HostHealth['isolation']

/** Which settings of a sandbox are applied to it; one that is not holds nothing back. */
interface Capabilities {
  readonly limits: boolean
  readonly network: boolean
  /** Where that is so, for whoever asked for more. */
  readonly where: string
}

/** By what keeps a sandbox in. */
const CAPABILITIES: Readonly<Record<Isolation, Capabilities>> = {
  bubblewrap: { limits: true, network: true, where: 'sandboxes are isolated' },
  container: { limits: false, network: true, where: 'sandboxes are containers' },
  none: { limits: false, network: false, where: 'sandboxes are not isolated' },
}

/** What a sandbox is to be held by, as far as its maker chose it. */
interface Promises {
  readonly network?: NetworkSpec | undefined
  readonly limits?: SandboxLimits | undefined
}

function isDefault(limits: SandboxLimits): boolean {
  return Object.entries(limits).every(([name, value]) => Reflect.get(DEFAULT_SANDBOX_LIMITS, name) === value)
}

function refuse(why: string): never {
  throw new SandwireError('bad_request', `Cannot make the sandbox: ${why}`)
}

/** Refuses a promise that nobody keeps, and one of which nobody knows now. The isolation is found only if it matters. */
export async function checkPromises(
  { network, limits }: Promises,
  findIsolation: () => Promise<Isolation | null>,
): Promise<void> {
  const policy = network === undefined || network.policy === 'open' ? undefined : network.policy
  const hasLimits = limits !== undefined && !isDefault(limits)
  if (policy === undefined && !hasLimits) return
  const isolation = await findIsolation()
  if (isolation === null)
    throw new SandwireError('provider_unavailable', 'Cannot make the sandbox: what makes it does not answer')
  const able = CAPABILITIES[isolation]
  if (hasLimits && !able.limits) refuse(`limits cannot be chosen where ${able.where}; leave out limits`)
  if (policy !== undefined && !able.network)
    refuse(`network cannot be "${policy}" where ${able.where}; leave out network, or choose open`)
}

/** What of its settings holds a sandbox back: an open network and no limits where nobody applies them. */
export function appliedSettings(
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
