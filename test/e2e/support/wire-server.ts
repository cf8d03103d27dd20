import { openContainers } from './container/containers.ts'
import { startSandbox } from './control.ts'
import { startSandboxd } from './sandboxd.ts'

/** Something that processes can be started at and attached to: a sandboxd, or a sandbox behind control. */
export interface WireServer {
  readonly port: number
  /** Credential of a request. */
  readonly headers: { readonly authorization: string }
  /** Sandbox to name in requests; none for a sandboxd that is addressed directly. */
  readonly sandbox?: string
  readonly socketUrl: (path: string) => string
  /** Fetches a route of sandboxd, or what control has for it. */
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>
  readonly stop: () => Promise<unknown>
}

/**
 * What the wire tests run against: a sandboxd, with `SANDWIRE_E2E=control` a sandbox behind control, or with `container` one
 * that is a container of the engine at `DOCKER_HOST`.
 */
export async function startWireServer(): Promise<WireServer> {
  switch (process.env['SANDWIRE_E2E']) {
    case 'control':
      return startSandbox()
    case 'container': {
      const { env } = await openContainers()
      return startSandbox({ env })
    }
    default:
      return startSandboxd()
  }
}
