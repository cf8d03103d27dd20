import { openContainers } from './container/containers.ts'
import { startSandbox } from './control.ts'
import { startSandboxd } from './sandboxd.ts'
import { openSpritesServer } from './sprites-server.ts'

/** A server that starts processes and accepts attachments: a sandboxd, or a sandbox behind control. */
export interface WireServer {
  readonly port: number
  /** Credential for requests. */
  readonly headers: { readonly authorization: string }
  /** Sandbox name for requests; none when sandboxd is addressed directly. */
  readonly sandbox?: string
  readonly socketUrl: (path: string) => string
  /** Fetches a route of sandboxd, or control's equivalent. */
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>
  readonly stop: () => Promise<unknown>
  /** Breaks all connections between control and the sandbox, where they can break by themselves. */
  readonly breakBehindControl?: () => void
}

/**
 * The server of the wire tests: a sandboxd, with `SANDWIRE_E2E=control` a sandbox behind control, or with `container` one
 * that is a container of the engine at `DOCKER_HOST`, or with `sprites` one in a sprite of the fake Sprites API.
 */
export async function startWireServer(): Promise<WireServer> {
  switch (process.env['SANDWIRE_E2E']) {
    case 'control':
      return startSandbox()
    case 'container': {
      const { env } = await openContainers()
      return startSandbox({ env })
    }
    case 'sprites':
      return startSpritesServer()
    default:
      return startSandboxd()
  }
}

/** A sandbox in a sprite of the fake Sprites API. */
export async function startSpritesServer(): Promise<WireServer> {
  const sprites = await openSpritesServer()
  const server = await startSandbox({ env: sprites.env }, 'default')
  return {
    ...server,
    breakBehindControl: () => sprites.api.sprite('dev').disconnectAll(),
    stop: async () => {
      await server.stop()
      await sprites[Symbol.asyncDispose]()
    },
  }
}
