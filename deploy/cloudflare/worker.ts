import { Public } from '../../apps/control/src/index.ts'
import { withClientAddress } from './client-address.ts'

// The Durable Objects and other exports of control.
export * from '../../apps/control/src/index.ts'

/** The public port on Cloudflare, which serves the default export. */
// oxlint-disable-next-line import/no-default-export -- Cloudflare requires one
export default class Edge extends Public {
  override fetch(request: Request): Promise<Response> {
    return super.fetch(withClientAddress(request))
  }
}
