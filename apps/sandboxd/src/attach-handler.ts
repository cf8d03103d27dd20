import type { Server } from 'bun'
import {
  checkSubprotocols,
  type Dialect,
  type ConnectionId,
  type ConnectionRights,
  SandwireError,
  SUBPROTOCOL,
} from '@sandwire/protocol'
import type { AgentRegistry } from './agents/agent-registry.ts'
import { type ConnectionAdapter, PING_MS, type RefuseSocket, type SocketData } from './attach-socket.ts'
import type { Caller } from './caller.ts'
import { type AttachParameters, parseAttach } from './http/attach-parameters.ts'
import { narrowRole } from './http/authorization.ts'
import { checkRoute, checkStart } from './http/authorization.ts'
import { readUpgrade } from './http/upgrade.ts'
import type { BandwidthShares } from './sessions/bandwidth-shares.ts'
import type { SessionRunner } from './sessions/session-runner.ts'
import type { SessionRegistry } from './sessions/session-registry.ts'

/** A session that an adapted connection is about to join. */
export interface AdaptedSession {
  readonly runner: SessionRunner
  readonly connection: ConnectionId
  /** The name that the client uses for the session. */
  readonly name: string
}

/** An endpoint whose clients speak another protocol than ours; it translates to `sandwire.v1` over the same sessions. */
export interface CompatEndpoint {
  /** Decodes the query of an upgrade; throws `bad_request`. */
  parse(query: URLSearchParams): {
    readonly parameters: AttachParameters
    /** Throws when the session is not one that the query may join. */
    readonly adapt: (session: AdaptedSession) => ConnectionAdapter
    /** Interval of pings to the client; undefined: the default. */
    readonly pingMs?: number
  }
  readonly refuse: RefuseSocket
  /** Options of its connections that differ from those of `sandwire.v1` clients. */
  readonly rights: Pick<
    ConnectionRights,
    'acknowledgement' | 'outputFrom' | 'roleWithoutLease' | 'hasSilenceTimeout' | 'skipsBacklog'
  >
}

/** A request for a WebSocket. */
export interface AttachRequest {
  readonly request: Request
  readonly server: Server<SocketData>
  readonly url: URL
  readonly requestId: string
}

/** What a request to attach says about itself. */
interface Upgrade {
  readonly url: URL
  readonly compat: CompatEndpoint | undefined
  readonly dialect: Dialect
  readonly isUpgrade: boolean
  readonly requestId: string
}

/** An upgrade that may go ahead. */
interface Admission {
  readonly data: SocketData
  /** The session created for it, which ends again when the handshake fails. */
  readonly created: SessionRunner | undefined
}

export interface AttachDependencies {
  readonly registry: SessionRegistry
  readonly shares: BandwidthShares
  readonly agents: Pick<AgentRegistry, 'checkTui'>
  /** Endpoints besides `/attach`, by path. */
  readonly compat: Readonly<Record<string, CompatEndpoint>>
  readonly now: () => number
  readonly wallClock: () => number
  /** Records a refusal that the client gets as a frame. */
  readonly recordRefusal: (error: SandwireError, requestId: string) => void
}

/** Headers for control, which reads no frames: the session that the connection leads to, or the code of the refusal. */
function describeSocket({ data }: Admission): Record<string, string> {
  if (data.kind === 'refuse') return { 'sandwire-refusal': data.error.code }
  if (data.kind === 'events') return {}
  const { id, mode } = data.runner.session.options
  return { 'sandwire-session': id, 'sandwire-mode': mode }
}

/** Handles upgrades: finds or creates the session, and decides role and protocol of the connection. */
export class AttachHandler {
  readonly #deps: AttachDependencies

  constructor(deps: AttachDependencies) {
    this.#deps = deps
  }

  handles(pathname: string): boolean {
    return pathname === '/attach' || Object.hasOwn(this.#deps.compat, pathname)
  }

  /** Upgrades, or throws. A `sandwire.v1` refusal is sent as a frame, because browsers cannot read the response to an upgrade. */
  attach({ request, server, url, requestId }: AttachRequest, caller: Caller): undefined {
    const compat = url.pathname === '/attach' ? undefined : this.#deps.compat[url.pathname]
    const { dialect: offered, isUpgrade, hasBody } = readUpgrade(request)
    // Compat endpoints translate to the dialect that has roles and screens.
    const dialect = compat === undefined ? offered : 'v1'
    if (hasBody) throw new SandwireError('bad_request', 'Cannot upgrade: the request has a body')
    if (isUpgrade && compat === undefined) checkSubprotocols(request.headers.get('sec-websocket-protocol'))
    let admission: Admission
    try {
      admission = this.#admit({ url, compat, dialect, isUpgrade, requestId }, caller)
    } catch (caught) {
      const error = SandwireError.from(caught)
      if (dialect === 'plain' || !isUpgrade || error.code === 'internal') throw error
      this.#deps.recordRefusal(error, requestId)
      admission = { data: { kind: 'refuse', error, refuse: compat?.refuse }, created: undefined }
    }
    // Empty, because Bun would answer a missing one with the first subprotocol the client offered.
    const headers = {
      'sec-websocket-protocol': compat === undefined && dialect === 'v1' ? SUBPROTOCOL : '',
      ...describeSocket(admission),
    }
    if (server.upgrade(request, { data: admission.data, headers })) return undefined
    admission.created?.end()
    throw new SandwireError('bad_request', 'Cannot upgrade: the WebSocket handshake is malformed')
  }

  /** Rights that a connection takes from its caller. The wall clock may be set meanwhile, so the re-authorization time is counted from now. */
  #rightsOf(
    caller: Caller,
  ): Pick<
    ConnectionRights,
    'principal' | 'defaultRole' | 'name' | 'login' | 'grant' | 'bandwidth' | 'reauthorizeMs'
  > {
    const { now, wallClock, shares } = this.#deps
    const { identity, authority, usualRole, name, login, grant, reauthorizeMs } = caller
    // All holders of the one secret have the same identity, so they cannot share a limit.
    const bandwidth = authority === 'bearer' ? undefined : shares.of(identity)
    return {
      principal: identity,
      ...(usualRole === undefined ? {} : { defaultRole: usualRole }),
      ...(name === undefined ? {} : { name }),
      ...(login === undefined ? {} : { login }),
      ...(grant === undefined ? {} : { grant }),
      ...(bandwidth === undefined ? {} : { bandwidth }),
      ...(reauthorizeMs === undefined ? {} : { reauthorizeMs: now() + reauthorizeMs - wallClock() }),
    }
  }

  /** Finds or creates the session that an upgrade names. A request that is no upgrade creates nothing. */
  #admit({ url, compat, dialect, isUpgrade, requestId }: Upgrade, caller: Caller): Admission {
    checkRoute(caller, `GET ${url.pathname}`)
    const parsed = compat?.parse(url.searchParams)
    // A request that is no upgrade has chosen no dialect: clients send one to learn why their upgrade was refused.
    const parameters = parsed?.parameters ?? parseAttach(url.searchParams, isUpgrade ? dialect : 'v1')
    if (parameters.kind === 'create') checkStart(caller)
    // Against the highest role the caller has in any session, so that a refused request creates nothing.
    narrowRole(caller, parameters.rights.role, true)
    if (!isUpgrade) throw new SandwireError('upgrade_required', 'Cannot attach without a WebSocket upgrade')
    const { registry, agents, now } = this.#deps
    if (caller.agentTui !== undefined) agents.checkTui()
    const { take, cols, rows } = parameters.rights
    const { runner, isNew } =
      parameters.kind === 'join'
        ? { runner: registry.find(parameters.session), isNew: false }
        : registry.create({ caller, requestId, ...parameters })
    const role = narrowRole(caller, parameters.rights.role, runner.command.isTemplate)
    const connection = registry.mintConnection()
    const adapter = parsed?.adapt({ runner, connection, name: caller.sessionName ?? runner.session.id })
    return {
      created: isNew ? runner : undefined,
      data: {
        kind: 'attach',
        connection,
        runner,
        requestId,
        rights: {
          authority: role,
          dialect,
          take,
          ...this.#rightsOf(caller),
          ...compat?.rights,
          exec: caller.exec && !runner.command.isTemplate,
          waits: parameters.kind === 'join' && role === 'viewer',
        },
        start: { env: {}, cols, rows },
        adapter,
        hasWindow: dialect === 'v1' && adapter === undefined,
        liveness: { receivedMs: now(), timer: undefined },
        pingMs: parsed?.pingMs ?? PING_MS,
      },
    }
  }
}
