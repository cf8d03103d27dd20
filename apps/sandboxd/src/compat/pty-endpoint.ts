import {
  COMPAT_HISTORY_BYTES,
  compatCloseOfError,
  encodeCompatMessage,
  findTextStart,
} from '@sandwire/internal-api'
import { type OutputLog, SandwireError } from '@sandwire/protocol'
import type { AdaptedSession, CompatEndpoint } from '../attach-handler.ts'
import type { ConnectionAdapter, RefuseSocket } from '../attach-socket.ts'
import { parseAttach } from '../http/attach-parameters.ts'
import type { SessionRunner } from '../sessions/session-runner.ts'
import { PtyCodec } from './pty-codec.ts'
import {
  SessionAdapter,
  type SessionAdapterDependencies,
  takeParameter,
  takePingMs,
} from './session-adapter.ts'

/** Control forwards `/ws/pty` to this path. */
export const PTY_PATH = '/envelopes/pty'

/** Terminals for front ends that speak the JSON messages of `/ws/pty`. */
export class PtyEndpoint implements CompatEndpoint {
  readonly #deps: SessionAdapterDependencies
  /** Attachments made by this endpoint, by session. Their clients know no roles and so share the lease. */
  readonly #attachments = new WeakMap<SessionRunner, Set<string>>()
  /** Sessions whose exit was sent to a client of this endpoint. */
  readonly #exitSent = new WeakSet<SessionRunner>()

  constructor(deps: SessionAdapterDependencies) {
    this.#deps = deps
  }

  /**
   * The query of a `sandwire.v1` attach, always of a terminal, with `ended=0` to refuse a session whose exit was sent before, and
   * the interval of pings in seconds.
   */
  parse(query: URLSearchParams): ReturnType<CompatEndpoint['parse']> {
    const rest = new URLSearchParams(query)
    const ended = takeParameter(rest, 'ended', { format: /^[01]$/, expected: '0 or 1' }) ?? '1'
    const ping = takePingMs(rest)
    if (!rest.has('session')) rest.append('mode', 'pty')
    return {
      parameters: parseAttach(rest, 'v1'),
      adapt: (session) => this.#adapt(session, ended === '1'),
      ...ping,
    }
  }

  /** Clients have no windows, offsets, roles or heartbeats. */
  readonly rights = {
    acknowledgement: 'connection',
    outputFrom: 'end',
    roleWithoutLease: 'collaborator',
    hasSilenceTimeout: false,
  } as const

  readonly refuse: RefuseSocket = (error) => {
    const { last, code, reason } = compatCloseOfError(error)
    return { message: encodeCompatMessage(last), code, reason }
  }

  #adapt(adapted: AdaptedSession, acceptsEnded: boolean): ConnectionAdapter {
    const { runner } = adapted
    if (runner.session.options.mode !== 'pty')
      throw new SandwireError('session_not_found', 'No terminal has this id')
    if (runner.session.state.kind === 'exited' && this.#exitSent.has(runner) && !acceptsEnded)
      throw new SandwireError('session_gone', 'The session has ended')
    const attachments = this.#attachments.get(runner) ?? new Set()
    this.#attachments.set(runner, attachments)
    const { log, attachments: known } = runner.session
    const codec = new PtyCodec({ name: adapted.name, historyBefore: (end) => historyBefore(log, end) })
    return new SessionAdapter(adapted, this.#deps, {
      codec,
      refuse: this.refuse,
      // Clients of this endpoint share the lease.
      canTake: () => {
        const { holder } = known.lease
        return (holder !== null && attachments.has(holder)) || known.lease.isClaimable(this.#deps.now())
      },
      attached: (attachment) => {
        for (const id of attachments) if (known.byId(id) === undefined) attachments.delete(id)
        attachments.add(attachment)
      },
      passedOn: () => {
        if (codec.hasEnded) this.#exitSent.add(runner)
      },
    })
  }
}

/** The output up to `end`, as much of it as the log holds and a client gets. */
export function historyBefore(log: Pick<OutputLog, 'start' | 'read'>, end: number): Uint8Array {
  const from = Math.max(log.start, end - COMPAT_HISTORY_BYTES)
  const bytes = new Uint8Array(Math.max(0, end - from))
  let at = from
  while (at < end) {
    const slice = log.read(at, end - at)
    if (slice === undefined) break
    bytes.set(slice.bytes, at - from)
    at = slice.end
  }
  return from === 0 ? bytes : bytes.subarray(findTextStart(bytes))
}
