import { WorkerEntrypoint } from 'cloudflare:workers'
import { type NetworkSpec } from '@sandwire/internal-api'
import { AllowList, parseConnectTarget } from '@sandwire/network-policy'
import type { Env } from '../../env.ts'
import { runtimeOf } from '../../runtime.ts'

/** Sandbox and network policy of the requests. */
export interface EgressProps {
  readonly sandbox: string
  readonly network: NetworkSpec
}

/** Why a request is refused; undefined when it is allowed. */
function refusalOf(url: URL, { policy, allow }: NetworkSpec): string | undefined {
  const { protocol, hostname, port } = url
  const target = parseConnectTarget(`${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`)
  if (target === undefined || policy === 'none') return 'not_listed'
  if (policy === 'open') return undefined
  const listing = new AllowList(allow).find(target)
  return listing === 'listed' ? undefined : listing
}

/** Handles the intercepted HTTP requests of a container. */
export class Egress extends WorkerEntrypoint<Env, EgressProps> {
  override async fetch(request: Request): Promise<Response> {
    const { sandbox, network } = this.ctx.props
    const { log } = runtimeOf(this.env)
    // workerd would send a thrown error to the sandbox, with its stack and paths of this machine.
    if (!URL.canParse(request.url))
      return new Response('Sandwire cannot read this address\n', { status: 400 })
    const url = new URL(request.url)
    const refusal = refusalOf(url, network)
    if (refusal !== undefined) {
      log.info('egress_blocked', { sandbox, code: refusal })
      const why = `it is not on the allowlist of this sandbox; to allow it, create the sandbox with --allow ${url.host}`
      return new Response(`Sandwire blocked ${url.host}: ${why}\n`, { status: 403 })
    }
    // The sandbox follows redirects itself, so that their targets are checked too.
    const onward = new Request(request, { redirect: 'manual' })
    try {
      return await (this.env.OUTSIDE === undefined ? fetch(onward) : this.env.OUTSIDE.fetch(onward))
    } catch {
      // The sandbox does not learn whether the host exists.
      log.info('egress_failed', { sandbox })
      return new Response(`Sandwire cannot reach ${url.host}\n`, { status: 502 })
    }
  }
}
