import { compatCloseOfError, encodeCompatMessage } from '@sandwire/internal-api'
import { decodeServer, limits, type OutputLog, SandwireError, TokenBucket } from '@sandwire/protocol'
import type { AdaptedSession, CompatEndpoint } from '../attach-handler.ts'
import type { ConnectionAdapter, RefuseSocket } from '../attach-socket.ts'
import { parseAttach } from '../http/attach-parameters.ts'
import type { SendOutcome, SessionConnection } from '../sessions/connections.ts'
import type { SessionRunner } from '../sessions/session-runner.ts'
import { PtyCodec, type PtyEffect } from './pty-codec.ts'

/** Output that a client gets of the time before it joined. */
export const HISTORY_BYTES = 200_000
/** How far into the history the end of a line is searched for. */
const LINE_BYTES = 4 * 1024
/** Continuation bytes of a UTF-8 character, at most. */
const MAX_UTF8_TAIL = 3
const NEWLINE = 0x0a

export interface PtyEndpointDependencies {
  /** A secret for a client that has none: 32 hex digits. */
  readonly mintIdentity: () => string
  readonly now: () => number
}

/** Control forwards `/ws/pty` to this path. */
export const PTY_PATH = '/envelopes/pty'

/** Terminals for front ends that speak the JSON messages of `/ws/pty`. */
export class PtyEndpoint implements CompatEndpoint {
  readonly #deps: PtyEndpointDependencies
  /** Attachments made by this endpoint, by session. Their clients know no roles and so share the lease. */
  readonly #attachments = new WeakMap<SessionRunner, Set<string>>()
  /** Sessions whose exit was sent to a client of this endpoint. */
  readonly #exitSent = new WeakSet<SessionRunner>()

  constructor(deps: PtyEndpointDependencies) {
    this.#deps = deps
  }

  /**
   * The query of a `sandwire.v1` attach, always of a terminal, with `ended=0` to refuse a session whose exit was sent before, and
   * the interval of pings in seconds.
   */
  parse(query: URLSearchParams): ReturnType<CompatEndpoint['parse']> {
    const rest = new URLSearchParams(query)
    const ended = takeParameter(rest, 'ended', /^[01]$/, '0 or 1') ?? '1'
    const ping = takeParameter(rest, 'ping', /^[1-9][0-9]{0,3}$/, 'a whole number from 1 to 9999')
    if (!rest.has('session')) rest.append('mode', 'pty')
    return {
      parameters: parseAttach(rest, 'v1'),
      adapt: (session) => this.#adapt(session, ended === '1'),
      ...(ping === undefined ? {} : { pingMs: Number(ping) * 1000 }),
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
    return new PtyConnection(adapted, this.#deps, {
      attachments,
      exitSent: () => this.#exitSent.add(runner),
    })
  }
}

/** Removes a parameter from the query and returns its value; throws `bad_request`. */
function takeParameter(
  query: URLSearchParams,
  name: string,
  format: RegExp,
  expected: string,
): string | undefined {
  const [value, ...more] = query.getAll(name)
  query.delete(name)
  if (more.length === 0 && (value === undefined || format.test(value))) return value
  throw new SandwireError('bad_request', `Cannot use parameter "${name}": expected ${expected}`)
}

interface EndpointState {
  /** Ids of this session's attachments that the endpoint made. */
  readonly attachments: Set<string>
  readonly exitSent: () => void
}

/** One connection of the endpoint: carries what the codec produces to the client and to the session. */
class PtyConnection implements ConnectionAdapter {
  readonly #session: AdaptedSession
  readonly #deps: PtyEndpointDependencies
  readonly #endpoint: EndpointState
  readonly #codec: PtyCodec
  /** Messages of the client, including those that are not passed to the session. */
  readonly #messages: TokenBucket
  #client: SessionConnection | undefined
  #isClosed = false

  constructor(session: AdaptedSession, deps: PtyEndpointDependencies, endpoint: EndpointState) {
    this.#session = session
    this.#deps = deps
    this.#endpoint = endpoint
    const { log } = session.runner.session
    this.#codec = new PtyCodec({ name: session.name, historyBefore: (end) => historyBefore(log, end) })
    this.#messages = new TokenBucket(limits.MESSAGES_PER_SECOND, limits.MESSAGES_PER_SECOND * 2, deps.now())
  }

  wrap(client: SessionConnection): SessionConnection {
    this.#client = client
    return {
      requestId: client.requestId,
      send: (data) => {
        const frame = decodeServer(data)
        if (frame === undefined) return 'lost'
        if (frame.kind === 'control' && frame.message.type === 'welcome')
          this.#remember(frame.message.attachment)
        const outcome = this.#perform(this.#codec.fromSession(frame, this.#canTake))
        if (this.#codec.hasEnded) this.#endpoint.exitSent()
        return outcome
      },
      sendOutput: (_, bytes) => this.#perform(this.#codec.output(bytes)),
      close: () => {
        const end = this.#codec.closing()
        if (end !== undefined) this.#close(end)
      },
      terminate: () => client.terminate(),
      inputSettled: () => client.inputSettled(),
    }
  }

  opened(): void {
    const { runner, connection } = this.#session
    runner.received(connection, this.#codec.hello(this.#deps.mintIdentity(), runner.session.resizes.current))
  }

  received(message: string | Uint8Array): void {
    if (this.#isClosed) return
    if (this.#messages.take(1, this.#deps.now())) {
      const outcome = this.#perform(this.#codec.fromClient(message, this.#canTake))
      if (outcome === 'lost') this.#client?.terminate()
      return
    }
    const { last, ...end } = compatCloseOfError(
      new SandwireError('rate_limited', 'Cannot take more messages now'),
    )
    this.#client?.send(encodeCompatMessage(last))
    this.#close(end)
  }

  closed(): void {
    const { runner, connection } = this.#session
    runner.received(connection, '{"type":"detach"}')
  }

  #close({ code, reason }: { readonly code: number; readonly reason: string }): void {
    this.#isClosed = true
    this.#client?.close(code, reason)
  }

  #remember(attachment: string): void {
    const known = this.#session.runner.session.attachments
    const { attachments } = this.#endpoint
    for (const id of attachments) if (known.byId(id) === undefined) attachments.delete(id)
    attachments.add(attachment)
  }

  /** Whether the lease is free, or held by another connection of this endpoint. */
  get #canTake(): boolean {
    const { lease } = this.#session.runner.session.attachments
    const { holder } = lease
    const isShared = holder !== null && this.#endpoint.attachments.has(holder)
    return isShared || lease.isClaimable(this.#deps.now())
  }

  /** Returns the outcome of the last message to the client. */
  #perform(effects: readonly PtyEffect[]): SendOutcome {
    const { runner, connection } = this.#session
    let outcome: SendOutcome = 'sent'
    for (const effect of effects) {
      if (effect.do === 'toSession') runner.received(connection, effect.frame)
      else outcome = this.#client?.send(effect.text) ?? 'lost'
      if (outcome === 'lost') break
    }
    return outcome
  }
}

/** The output up to `end`, as much of it as the log holds and a client gets. */
export function historyBefore(log: Pick<OutputLog, 'start' | 'read'>, end: number): Uint8Array {
  const from = Math.max(log.start, end - HISTORY_BYTES)
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

/** Where truncated output can be shown from: after a newline, where no escape sequence continues, or, in a long line, at the next character. */
function findTextStart(bytes: Uint8Array): number {
  const newline = bytes.subarray(0, LINE_BYTES).indexOf(NEWLINE)
  if (newline >= 0) return newline + 1
  let at = 0
  while (at < MAX_UTF8_TAIL && isContinuation(bytes[at])) at += 1
  return at
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && byte >> 6 === 0b10
}
