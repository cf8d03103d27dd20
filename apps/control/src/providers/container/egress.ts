import { WorkerEntrypoint } from 'cloudflare:workers'
import { type NetworkSpec } from '@sandwire/internal-api'
import { AllowList, parseConnectTarget } from '@sandwire/network-policy'
import type { Env } from '../../env.ts'
import { runtimeOf } from '../../runtime.ts'

/** Whose requests these are, and where they may go. */
export interface EgressProps {
  readonly sandbox: string
  readonly network: NetworkSpec
}

/** Why a request is refused; undefined when it is not. */
function refusalOf(url: URL, { policy, allow }: NetworkSpec): string | undefined {
  const { protocol, hostname, port } = url
  const target = parseConnectTarget(`${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`)
  if (target === undefined || policy === 'none') return 'not_listed'
  if (policy === 'open') return undefined
  const listing = new AllowList(allow).find(target)
  return listing === 'listed' ? undefined : listing
}

/** Where the web requests of a sandbox with a network of its own arrive. */
export class Egress extends WorkerEntrypoint<Env, EgressProps> {
  override async fetch(request: Request): Promise<Response> {
    const { sandbox, network } = this.ctx.props
    const { log } = runtimeOf(this.env)
    // What is thrown here, workerd would tell the sandbox with its stack and the paths of this machine.
    if (!URL.canParse(request.url))
      return new Response('Sandwire cannot read this address\n', { status: 400 })
    const url = new URL(request.url)
    const refusal = refusalOf(url, network)
    if (refusal !== undefined) {
      log.info('egress_blocked', { sandbox, code: refusal })
      const why = `it is not on the allowlist of this sandbox; to allow it, create the sandbox with --allow ${url.host}`
      return new Response(`Sandwire blocked ${url.host}: ${why}\n`, { status: 403 })
    }
    // Where an answer leads elsewhere, the sandbox asks again, and is judged again.
    const onward = new Request(request, { redirect: 'manual' })
    try {
      return await (this.env.OUTSIDE === undefined ? fetch(onward) : this.env.OUTSIDE.fetch(onward))
    } catch {
      // Whether there is no such host or no sandbox may reach it is nobody's business inside.
      log.info('egress_failed', { sandbox })
      return new Response(`Sandwire cannot reach ${url.host}\n`, { status: 502 })
    }
  }
}
