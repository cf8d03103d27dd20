import { WorkerEntrypoint } from 'cloudflare:workers'
import { EGRESS_PROXY_HEADER, GATEWAY_NAME, type NetworkSpec, SANDBOX_HEADER } from '@sandwire/internal-api'
import { type BlockReason, createPolicy, explainBlock, parseConnectTarget } from '@sandwire/network-policy'
import { handleGateway } from '../../credentials/gateway.ts'
import type { Env } from '../../env.ts'
import { runtimeOf } from '../../runtime.ts'

/** Sandbox and network policy of the requests. */
export interface EgressProps {
  readonly sandbox: string
  readonly network: NetworkSpec
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }
/** The header of a response with which the egress proxy refuses an address. */
const BLOCKED = 'blocked:'

/** Why a request is refused, and the response to it; undefined when host and port are allowed. */
function refusalOf(url: URL, network: NetworkSpec): { reason: BlockReason; text: string } | undefined {
  const { protocol, hostname, port } = url
  const target = parseConnectTarget(`${hostname}:${port === '' ? DEFAULT_PORTS[protocol] : port}`)
  if (target === undefined)
    return { reason: 'address_refused', text: `Sandwire blocked ${url.host}: not a name or address` }
  const reason = createPolicy(network)(target)
  return reason === undefined ? undefined : { reason, text: explainBlock(reason, target) }
}

/** Handles the intercepted HTTP requests of a container. */
export class Egress extends WorkerEntrypoint<Env, EgressProps> {
  override async fetch(request: Request): Promise<Response> {
    const { sandbox, network } = this.ctx.props
    // workerd would send a thrown error to the sandbox, with its stack and paths of this machine.
    if (!URL.canParse(request.url))
      return new Response('Sandwire cannot read this address\n', { status: 400 })
    const url = new URL(request.url)
    // Under every network policy. The container is known here, whatever the request says.
    if (url.host === GATEWAY_NAME && url.protocol === 'http:') {
      const hold = (work: Promise<unknown>): void => this.ctx.waitUntil(work)
      return handleGateway({ request, source: { sandbox }, hold }, this.env)
    }
    const refusal = refusalOf(url, network)
    if (refusal !== undefined) {
      this.#log('egress_blocked', { sandbox, code: refusal.reason })
      return new Response(`${refusal.text}\n`, { status: 403 })
    }
    try {
      const response = await this.#send(request)
      const outcome = this.env.OUTSIDE === undefined ? null : response.headers.get(EGRESS_PROXY_HEADER)
      if (outcome === null) return response
      if (outcome.startsWith(BLOCKED))
        this.#log('egress_blocked', { sandbox, code: outcome.slice(BLOCKED.length) })
      if (response.status !== 502) return new Response(response.body, { status: response.status })
    } catch {
      // The proxy does not respond.
    }
    // The sandbox does not learn whether the host exists.
    this.#log('egress_failed', { sandbox })
    return new Response(`Sandwire cannot reach ${url.host}\n`, { status: 502 })
  }

  /** Through the egress proxy, which checks addresses; on Cloudflare, the network of Workers has public addresses only. */
  #send(request: Request): Promise<Response> {
    // The sandbox follows redirects itself, so that their targets are checked too.
    const onward = new Request(request, { redirect: 'manual' })
    if (this.env.OUTSIDE === undefined) return fetch(onward)
    onward.headers.set(SANDBOX_HEADER, this.ctx.props.sandbox)
    return this.env.OUTSIDE.fetch(onward)
  }

  /** Logs at a limited rate, so that a sandbox cannot fill the log. */
  #log(event: 'egress_blocked' | 'egress_failed', fields: { sandbox: string; code?: string }): void {
    const { log, egressLogLimit, nowMs } = runtimeOf(this.env)
    if (egressLogLimit.take(fields.sandbox, nowMs())) log.info(event, fields)
  }
}
