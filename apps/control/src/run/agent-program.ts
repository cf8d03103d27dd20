import { decodeAgentProgramStatus } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { Env } from '../env.ts'
import { readBoundedJson } from '../http/read-bounded.ts'

const MAX_RESPONSE_BYTES = 64 * 1024
const REQUEST_MS = 10_000

/**
 * Lets the host install the program of an agent; false while that is in progress. Without a host, the image of sandboxes has it.
 * Throws `agent_not_configured` when it cannot be installed.
 */
export async function ensureAgentProgram({ HOST }: Pick<Env, 'HOST'>, agent: string): Promise<boolean> {
  if (HOST === undefined) return true
  const signal = AbortSignal.timeout(REQUEST_MS)
  const response = await HOST.fetch(`http://host/agents/${agent}`, { method: 'PUT', signal })
  const status = decodeAgentProgramStatus(await readBoundedJson(response, MAX_RESPONSE_BYTES))
  switch (status?.state) {
    case 'installed':
      return true
    case 'installing':
      return false
    case 'failed':
      throw new SandwireError('agent_not_configured', status.problem)
    case undefined:
      throw new SandwireError('provider_unavailable', `The host cannot install agent "${agent}"`)
  }
}
