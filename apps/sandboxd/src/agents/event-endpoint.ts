import type { Server } from 'bun'
import { ERRORS, SandwireError } from '@sandwire/protocol'
import type { SocketData } from '../attach-socket.ts'
import type { Caller } from '../caller.ts'
import type { ClaudeStreams } from '../compat/claude-streams.ts'
import { checkRoute } from '../http/authorization.ts'
import { readUpgrade } from '../http/upgrade.ts'
import type { AttachmentFilter } from '../sessions/session-registry.ts'
import type { AgentRegistry } from './agent-registry.ts'
import { checkViewers, readAfter, selectSource } from './agent-routes.ts'
import { EventSocket } from './event-socket.ts'

const PATH = /^\/agents\/([^/]+)\/(events|claude-stream)$/

/** Upgrades requests for a run's events, or for a session of `/ws/claude-stream`, to WebSockets. */
export class EventEndpoint {
  readonly #agents: AgentRegistry
  readonly #streams: ClaudeStreams
  readonly #sockets = new Set<EventSocket>()

  constructor(agents: AgentRegistry, streams: ClaudeStreams) {
    this.#agents = agents
    this.#streams = streams
  }

  handles(request: Request, pathname: string): boolean {
    return PATH.test(pathname) && readUpgrade(request).isUpgrade
  }

  upgrade(
    call: { readonly request: Request; readonly url: URL; readonly server: Server<SocketData> },
    caller: Caller,
  ): undefined {
    const { request, url, server } = call
    const [, id = '', kind = ''] = PATH.exec(url.pathname) ?? []
    checkRoute(caller, `GET /agents/:id/${kind}`)
    if (readUpgrade(request).hasBody)
      throw new SandwireError('bad_request', 'Cannot upgrade: the request has a body')
    const record = this.#agents.record(id)
    const { feed } = kind === 'events' ? selectSource(record, url) : { feed: record.lineFeed }
    checkViewers(feed)
    const socket =
      kind === 'events'
        ? new EventSocket(feed, readAfter(url, request.headers), caller)
        : this.#streams.open(record, url.searchParams, caller)
    const data: SocketData = {
      kind: 'events',
      socket,
      opened: () => this.#sockets.add(socket),
      closed: () => this.#sockets.delete(socket),
    }
    // Empty, because Bun would answer a missing one with the first subprotocol the client offered.
    if (server.upgrade(request, { data, headers: { 'sec-websocket-protocol': '' } })) return undefined
    throw new SandwireError('bad_request', 'Cannot upgrade: the WebSocket handshake is malformed')
  }

  /** Closes the connections that a revocation concerns; returns their number. */
  revoke({ identity, login, grant, session }: AttachmentFilter): number {
    // Attachments of one session are meant.
    if (session !== undefined) return 0
    const concerned = [...this.#sockets].filter(
      ({ caller }) =>
        (identity === undefined || caller.identity === identity) &&
        (login === undefined || caller.login === login) &&
        (grant === undefined || caller.grant === grant),
    )
    for (const socket of concerned) socket.close(ERRORS.revoked.close, 'revoked')
    return concerned.length
  }
}
