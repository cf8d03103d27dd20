import { WorkerEntrypoint } from 'cloudflare:workers'
import { AllowList, parseConnectTarget } from '@sandwire/internal'
import type { Env } from '../../env.ts'
import { runtimeOf } from '../../runtime.ts'

/** Whose requests these are, and where they may go. */
export interface EgressProps {
  readonly sandbox: string
  readonly allow: readonly string[]
}

/** Where the web requests of a sandbox with a list arrive. */
export class Egress extends WorkerEntrypoint<Env, EgressProps> {
  override async fetch(request: Request): Promise<Response> {
    const { sandbox, allow } = this.ctx.props
    const { protocol, host, port } = new URL(request.url)
    const target = parseConnectTarget(port === '' ? `${host}:${protocol === 'https:' ? 443 : 80}` : host)
    const listing = target === undefined ? 'not_listed' : new AllowList(allow).find(target)
    if (listing !== 'listed') {
      runtimeOf(this.env).log.info('egress_blocked', { sandbox, code: listing })
      return new Response(`Sandwire blocked ${host}: it is not on the list of this sandbox\n`, {
        status: 403,
      })
    }
    const outside = this.env.OUTSIDE
    return outside === undefined ? fetch(request) : outside.fetch(request)
  }
}
