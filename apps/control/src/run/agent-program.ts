import { decodeAgentProgramStatus } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { Config } from '../config.ts'
import { readBoundedJson } from '../http/read-bounded.ts'

const MAX_RESPONSE_BYTES = 64 * 1024
const REQUEST_MS = 10_000

/**
 * Lets the host install the program of an agent; false while that is in progress. Without a host, the image of sandboxes has it;
 * sandboxes have those that the operator declared.
 * Throws `agent_not_configured` when it cannot be installed.
 */
export async function ensureAgentProgram(
  { HOST }: { readonly HOST?: { fetch(url: string, init: RequestInit): Promise<Response> } | undefined },
  { provider }: Pick<Config, 'provider'>,
  { name, isInstalled }: { readonly name: string; readonly isInstalled: boolean },
): Promise<boolean> {
  if (HOST === undefined || provider !== 'host' || !isInstalled) return true
  const signal = AbortSignal.timeout(REQUEST_MS)
  const response = await HOST.fetch(`http://host/agents/${name}`, { method: 'PUT', signal })
  const status = decodeAgentProgramStatus(await readBoundedJson(response, MAX_RESPONSE_BYTES))
  switch (status?.state) {
    case 'installed':
      return true
    case 'installing':
      return false
    case 'failed':
      throw new SandwireError('agent_not_configured', status.problem)
    case undefined:
      throw new SandwireError('provider_unavailable', `The host cannot install agent "${name}"`)
  }
}
