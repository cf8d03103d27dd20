import { decodeServer, limits, SandwireError, TokenBucket } from '@sandwire/protocol'
import type { AdaptedSession } from '../attach-handler.ts'
import type { ConnectionAdapter, RefuseSocket } from '../attach-socket.ts'
import type { SendOutcome, SessionConnection } from '../sessions/connections.ts'
import type { CodecEffect, SessionCodec } from './session-codec.ts'

export interface SessionAdapterDependencies {
  /** A secret for a client that has none: 32 hex digits. */
  readonly mintIdentity: () => string
  readonly now: () => number
}

export interface SessionAdapterOptions {
  readonly codec: SessionCodec
  /** Refuses a client that sends too much. */
  readonly refuse: RefuseSocket
  /** Whether the client may take the lease now. */
  readonly canTake: () => boolean
  /** The session accepted the client under this id. */
  readonly attached?: (attachment: string) => void
  /** A frame of the session was passed on. */
  readonly passedOn?: () => void
}

/** One connection of a compat client to a session: carries what its codec produces to the client and to the session. */
export class SessionAdapter implements ConnectionAdapter {
  readonly #session: AdaptedSession
  readonly #deps: SessionAdapterDependencies
  readonly #options: SessionAdapterOptions
  /** Messages of the client, including those that are not passed to the session. */
  readonly #messages: TokenBucket
  #client: SessionConnection | undefined
  #isClosed = false

  constructor(session: AdaptedSession, deps: SessionAdapterDependencies, options: SessionAdapterOptions) {
    this.#session = session
    this.#deps = deps
    this.#options = options
    this.#messages = new TokenBucket(limits.MESSAGES_PER_SECOND, limits.MESSAGES_PER_SECOND * 2, deps.now())
  }

  wrap(client: SessionConnection): SessionConnection {
    const { codec, canTake, attached, passedOn } = this.#options
    this.#client = client
    return {
      requestId: client.requestId,
      send: (data) => {
        const frame = decodeServer(data)
        if (frame === undefined) return 'lost'
        if (frame.kind === 'control' && frame.message.type === 'welcome') attached?.(frame.message.attachment)
        const outcome = this.#perform(codec.fromSession(frame, canTake()))
        passedOn?.()
        return outcome
      },
      sendOutput: (_, bytes) => this.#perform(codec.output(bytes)),
      close: () => {
        const end = codec.closing()
        if (end !== undefined) this.#close(end)
      },
      terminate: () => client.terminate(),
      inputSettled: () => client.inputSettled(),
    }
  }

  opened(): void {
    const { runner, connection } = this.#session
    const size = runner.session.resizes.current
    runner.received(connection, this.#options.codec.hello(this.#deps.mintIdentity(), size))
  }

  received(message: string | Uint8Array): void {
    if (this.#isClosed) return
    const { codec, canTake, refuse } = this.#options
    if (this.#messages.take(1, this.#deps.now())) {
      const outcome = this.#perform(codec.fromClient(message, canTake()))
      if (outcome === 'lost') this.#client?.terminate()
      return
    }
    const { message: last, ...end } = refuse(
      new SandwireError('rate_limited', 'Cannot take more messages now'),
    )
    this.#client?.send(last)
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

  /** Returns the outcome of the last message to the client. */
  #perform(effects: readonly CodecEffect[]): SendOutcome {
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

/** Removes a parameter from the query and returns its value; throws `bad_request`. */
export function takeParameter(
  query: URLSearchParams,
  name: string,
  { format, expected }: { readonly format: RegExp; readonly expected: string },
): string | undefined {
  const [value, ...more] = query.getAll(name)
  query.delete(name)
  if (more.length === 0 && (value === undefined || format.test(value))) return value
  throw new SandwireError('bad_request', `Cannot use parameter "${name}": expected ${expected}`)
}

/** Removes the interval of pings, in seconds, from the query; undefined: the default. */
export function takePingMs(query: URLSearchParams): { readonly pingMs?: number } {
  const seconds = takeParameter(query, 'ping', {
    format: /^[1-9][0-9]{0,3}$/,
    expected: 'a whole number from 1 to 9999',
  })
  return seconds === undefined ? {} : { pingMs: Number(seconds) * 1000 }
}
