import type { Server } from 'bun'
import {
  checkSubprotocols,
  type Dialect,
  type LinkRights,
  SandwireError,
  SUBPROTOCOL,
} from '@sandwire/protocol'
import type { SocketData } from './attach-socket.ts'
import { PtyLink } from './envelopes/pty-link.ts'
import { checkPtySession, parsePtyQuery, type PtyQuery } from './envelopes/pty-query.ts'
import { parseAttach } from './http/attach-parameters.ts'
import type { Caller } from './caller.ts'
import { narrowRole } from './http/narrow-role.ts'
import { checkRoute, checkStart } from './http/route-rights.ts'
import { readUpgrade } from './http/upgrade.ts'
import type { BandwidthShares } from './sessions/bandwidth-shares.ts'
import type { SessionHost } from './sessions/session-host.ts'
import type { SessionRegistry } from './sessions/session-registry.ts'

/** What is spoken on a connection: our own dialects, or an envelope that is translated. */
type Speech = 'sandwire' | 'pty'

/** Paths that become WebSockets. */
const SPEECH: Readonly<Record<string, Speech>> = { '/attach': 'sandwire', '/envelopes/pty': 'pty' }

/** Names of the routes, as the table of rights has them. */
export const ATTACH_ROUTES: readonly string[] = Object.keys(SPEECH).map((path) => `GET ${path}`)

/** A request for a WebSocket. */
export interface AttachRequest {
  readonly request: Request
  readonly server: Server<SocketData>
  readonly url: URL
  readonly requestId: string
}

/** What a request to attach says of itself. */
interface Upgrade {
  readonly url: URL
  readonly speech: Speech
  readonly dialect: Dialect
  readonly isUpgrade: boolean
  readonly requestId: string
}

/** An upgrade that may go ahead. */
interface Admitted {
  readonly data: SocketData
  /** The session made for it, which ends again when the handshake fails. */
  readonly created: SessionHost | undefined
}

export interface DeskDependencies {
  readonly registry: SessionRegistry
  readonly shares: BandwidthShares
  readonly now: () => number
  readonly wallClock: () => number
  /** A secret of a client that mints none itself: 32 hex digits. */
  readonly mintIdentity: () => string
  /** Writes down a refusal that is told in a frame. */
  readonly noteRefusal: (error: SandwireError, requestId: string) => void
}

/** Whether a path becomes a WebSocket. */
export function isAttachPath(pathname: string): boolean {
  return Object.hasOwn(SPEECH, pathname)
}

/** Tells control, which reads no frame, what the connection leads to: a session, for which it has names of its own, or a refusal. */
function describeSocket({ data }: Admitted): Record<string, string> {
  if (data.kind === 'refuse') return { 'sandwire-refusal': data.error.code }
  const { id, mode } = data.host.session.options
  return { 'sandwire-session': id, 'sandwire-mode': mode }
}

/** Decides upgrades: which session, in which role, and what is spoken. */
export class AttachDesk {
  readonly #deps: DeskDependencies
  #links = 0

  constructor(deps: DeskDependencies) {
    this.#deps = deps
  }

  /** Upgrades, or throws; what browsers could not read is told in a frame. */
  attach({ request, server, url, requestId }: AttachRequest, caller: Caller): undefined {
    const speech = SPEECH[url.pathname] ?? 'sandwire'
    const { dialect: offered, isUpgrade, hasBody } = readUpgrade(request)
    // Envelopes are translated to the dialect that has roles and screens.
    const dialect = speech === 'sandwire' ? offered : 'v1'
    if (hasBody) throw new SandwireError('bad_request', 'Cannot upgrade: the request has a body')
    if (isUpgrade && speech === 'sandwire') checkSubprotocols(request.headers.get('sec-websocket-protocol'))
    let admitted: Admitted
    try {
      admitted = this.#admit({ url, speech, dialect, isUpgrade, requestId }, caller)
    } catch (caught) {
      const error = SandwireError.from(caught)
      if (dialect === 'plain' || !isUpgrade || error.code === 'internal') throw error
      this.#deps.noteRefusal(error, requestId)
      admitted = { data: { kind: 'refuse', error, isEnvelope: speech !== 'sandwire' }, created: undefined }
    }
    // Empty, because Bun would answer a missing one with the first subprotocol the client offered.
    const headers = {
      'sec-websocket-protocol': speech === 'sandwire' && dialect === 'v1' ? SUBPROTOCOL : '',
      ...describeSocket(admitted),
    }
    if (server.upgrade(request, { data: admitted.data, headers })) return undefined
    admitted.created?.end()
    throw new SandwireError('bad_request', 'Cannot upgrade: the WebSocket handshake is malformed')
  }

  /** What a connection has of its caller. The wall clock may be set while it lasts, so its time to stay is counted from now. */
  #rightsOf(
    caller: Caller,
  ): Pick<
    LinkRights,
    'principal' | 'usualRole' | 'name' | 'login' | 'grant' | 'bandwidth' | 'reauthorizeMs'
  > {
    const { now, wallClock, shares } = this.#deps
    const { identity, standing, usualRole, name, login, grant, reauthorizeMs } = caller
    // Whoever has the one secret may be anybody.
    const bandwidth = standing === 'bearer' ? undefined : shares.of(identity)
    return {
      principal: identity,
      ...(usualRole === undefined ? {} : { usualRole }),
      ...(name === undefined ? {} : { name }),
      ...(login === undefined ? {} : { login }),
      ...(grant === undefined ? {} : { grant }),
      ...(bandwidth === undefined ? {} : { bandwidth }),
      ...(reauthorizeMs === undefined ? {} : { reauthorizeMs: now() + reauthorizeMs - wallClock() }),
    }
  }

  /** Finds or creates the session that an upgrade names. Nothing is created for a request that is no upgrade. */
  #admit({ url, speech, dialect, isUpgrade, requestId }: Upgrade, caller: Caller): Admitted {
    checkRoute(caller, `GET ${url.pathname}`)
    // A request that is no upgrade has not chosen a dialect: clients ask that way what was wrong with their upgrade.
    const pty = speech === 'pty' ? parsePtyQuery(url.searchParams) : undefined
    const parameters = pty?.parameters ?? parseAttach(url.searchParams, isUpgrade ? dialect : 'v1')
    if (parameters.kind === 'create') checkStart(caller)
    // As much as the caller may be anywhere, so that nothing is made for who is refused.
    narrowRole(caller, parameters.rights.role, true)
    if (!isUpgrade) throw new SandwireError('upgrade_required', 'Cannot attach without a WebSocket upgrade')
    const { registry, now } = this.#deps
    const { take, cols, rows } = parameters.rights
    const { host, isNew } =
      parameters.kind === 'join'
        ? { host: registry.find(parameters.session), isNew: false }
        : registry.create({ caller, requestId, ...parameters })
    const authority = narrowRole(caller, parameters.rights.role, host.command.isTemplate)
    this.#links += 1
    const link = this.#links
    return {
      created: isNew ? host : undefined,
      data: {
        kind: 'attach',
        link,
        host,
        requestId,
        rights: {
          authority,
          dialect,
          take,
          ...this.#rightsOf(caller),
          isRelayed: pty !== undefined,
          exec: caller.exec && !host.command.isTemplate,
          waits: parameters.kind === 'join' && authority === 'viewer',
        },
        start: {
          env: {},
          cols,
          rows,
        },
        ...(pty === undefined ? {} : { envelope: this.#envelope(pty, host, link, caller) }),
        liveness: {
          heardMs: now(),
          timer: undefined,
        },
      },
    }
  }

  #envelope(query: PtyQuery, host: SessionHost, link: number, { sessionName }: Caller): PtyLink {
    checkPtySession(host, query)
    const { mintIdentity, now } = this.#deps
    return new PtyLink({ host, link, name: sessionName ?? host.session.id, mintIdentity, now })
  }
}
