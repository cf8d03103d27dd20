import { CONTAINER_GATEWAY_URL, GATEWAY_PORT, gitEnvironment, modelBaseUrl } from '@sandwire/internal-api'
import type { ModelProvider } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import type { GatewayGrant, GatewayUsage } from './grant.ts'
import type { GatewayGrantObject } from './grant-object.ts'
import { isListed, openProvider } from './providers.ts'
import { secretsOf } from './secrets.ts'

export type { GatewayGrant, GatewayUsage } from './grant.ts'

/** What a run gets of the gateway. */
export interface GatewayAccess {
  /** Format of the model API, and its base URL at the gateway. */
  readonly api: ModelProvider['api']
  readonly baseUrl: string
  /** Environment of the agent and of the git commands of its run: URLs of the gateway, and the token. */
  readonly env: Readonly<Record<string, string>>
  /** The token, the only secret in the sandbox: useless outside it and after the run. It must not be in an event or result. */
  readonly token: string
}

/** Gateway grants of runs. */
export interface GatewayGrants {
  /** True when the server has the credential of a provider, and sandboxes that can reach the gateway. */
  isConfigured(provider: string): boolean
  /** Throws `agent_not_configured` with what the operator must set, and `bad_request` for a model that is not offered. */
  check(grant: Pick<GatewayGrant, 'provider'> & { readonly model?: string }): Promise<void>
  /**
   * Creates the grant of a run, and returns what its agent needs. The token exists nowhere else. A second call for a run replaces
   * token and limits, and keeps the usage. Throws `agent_not_configured`.
   */
  create(grant: GatewayGrant): Promise<GatewayAccess>
  /** Ends the grant: from now on its token is refused. Returns what the run used. */
  end(run: string): Promise<GatewayUsage>
  /** What the run used so far; throws `not_found` without a grant. */
  usage(run: string): Promise<GatewayUsage>
  /** Deletes the grant with its usage, when the run is deleted. */
  remove(run: string): Promise<void>
}

const notConfigured = (problem: string): SandwireError =>
  new SandwireError('agent_not_configured', `Cannot start the agent: ${problem}`)

/** Variables by which the clients of an API find the gateway. */
function modelEnvironment(
  api: ModelProvider['api'],
  baseUrl: string,
  token: string,
): Readonly<Record<string, string>> {
  return api === 'anthropic'
    ? { ANTHROPIC_BASE_URL: baseUrl, ANTHROPIC_AUTH_TOKEN: token }
    : { OPENAI_BASE_URL: `${baseUrl}/v1`, OPENAI_API_KEY: token }
}

/** Grants through the objects that hold them. */
export function gatewayGrantsOf(env: Env): GatewayGrants {
  const { config, isolationOf, keys } = runtimeOf(env)
  const objectOf = (run: string): DurableObjectStub<GatewayGrantObject> =>
    env.GATEWAY_GRANT.get(env.GATEWAY_GRANT.idFromName(run))
  const open = (id: string) => {
    // A key would not help.
    if (config.provider === 'sprites') throw notConfigured('sprites cannot reach the gateway')
    const provider = openProvider(id, config.credentials, secretsOf(env))
    if ('problem' in provider) throw notConfigured(provider.problem)
    return provider
  }
  const requireIsolation = async (): Promise<void> => {
    if (config.provider === 'host' && (await isolationOf(crypto.randomUUID())) === 'none')
      throw notConfigured(
        'sandboxes of this server are not isolated, so that they share the port of the gateway',
      )
  }
  return {
    isConfigured: (provider) =>
      config.provider !== 'sprites' &&
      !('problem' in openProvider(provider, config.credentials, secretsOf(env))),
    async check({ provider, model }) {
      const { prices } = open(provider)
      if (model !== undefined && !isListed(Object.keys(prices), model))
        throw new SandwireError('bad_request', `Cannot start the agent: model "${model}" is not offered`)
      await requireIsolation()
    },
    async create(grant) {
      const { api } = open(grant.provider)
      await requireIsolation()
      const { gatewayTokens } = await keys()
      const { token, hash } = await gatewayTokens.mint(grant.run)
      unwrap(await objectOf(grant.run).create(grant, hash))
      const url = config.provider === 'host' ? `http://127.0.0.1:${GATEWAY_PORT}` : CONTAINER_GATEWAY_URL
      const baseUrl = modelBaseUrl(url, grant.provider)
      const hosts = grant.git === undefined ? [] : [new URL(grant.git.repository).host]
      return {
        api,
        baseUrl,
        token,
        env: {
          ...modelEnvironment(api, baseUrl, token),
          ...gitEnvironment(url, token, hosts),
          SANDWIRE_GATEWAY_URL: url,
        },
      }
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
