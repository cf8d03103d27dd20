import { CONTAINER_GATEWAY_URL, type GatewayAccess } from '@sandwire/internal-api'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import type { GatewayGrant, GatewayUsage } from './grant.ts'
import type { GatewayGrantObject } from './grant-object.ts'

export type { GatewayGrant, GatewayUsage, TokenUsage } from './grant.ts'
export { CONTAINER_GATEWAY_URL }

/** Gateway grants of runs. */
export interface GatewayGrants {
  /**
   * Creates the grant of a run, and returns what sandboxd needs to start the agent. The token exists nowhere else. A second call
   * for a run replaces token and limits, and keeps the usage.
   */
  create(grant: GatewayGrant): Promise<GatewayAccess>
  /** Ends the grant: from now on its token is refused. Returns what the run used. */
  end(run: string): Promise<GatewayUsage>
  /** What the run used so far; throws `not_found` without a grant. */
  usage(run: string): Promise<GatewayUsage>
  /** Deletes the grant with its usage, when the run is deleted. */
  remove(run: string): Promise<void>
}

/** Grants through the objects that hold them. */
export function gatewayGrantsOf(env: Env): GatewayGrants {
  const objectOf = (run: string): DurableObjectStub<GatewayGrantObject> =>
    env.GATEWAY_GRANT.get(env.GATEWAY_GRANT.idFromName(run))
  return {
    async create(grant) {
      const { gatewayTokens } = await runtimeOf(env).keys()
      const { token, hash } = await gatewayTokens.mint(grant.run)
      unwrap(await objectOf(grant.run).create(grant, hash))
      return { token, gitHosts: grant.git === undefined ? [] : [new URL(grant.git.repository).host] }
    },
    async end(run) {
      return unwrap(await objectOf(run).end())
    },
    async usage(run) {
      return unwrap(await objectOf(run).usage())
    },
    async remove(run) {
      unwrap(await objectOf(run).remove())
    },
  }
}
