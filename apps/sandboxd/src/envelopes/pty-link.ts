import {
  decodeServer,
  envelopeEndOf,
  encodePty,
  limits,
  SandwireError,
  TokenBucket,
} from '@sandwire/protocol'
import type { SessionHost } from '../sessions/session-host.ts'
import type { HostLink } from '../sessions/session-links.ts'
import type { SendOutcome } from '../sessions/socket-link.ts'
import type { Envelope } from './envelope.ts'
import { historyBefore } from './history.ts'
import { PtyCodec, type PtyEffect } from './pty-codec.ts'

export interface PtyLinkDependencies {
  readonly host: SessionHost
  /** The connection, as the session knows it. */
  readonly link: number
  /** What the client is told that its session is called. */
  readonly name: string
  readonly mintIdentity: () => string
  readonly now: () => number
}

/** One connection of `/ws/pty`: carries what the codec says to the client and to the session. */
export class PtyLink implements Envelope {
  readonly #deps: PtyLinkDependencies
  readonly #codec: PtyCodec
  /** Messages of the client, those included that the session never hears of. */
  readonly #messages: TokenBucket
  #client: HostLink | undefined
  #isClosed = false

  constructor(deps: PtyLinkDependencies) {
    const { host, name, now } = deps
    this.#deps = deps
    this.#codec = new PtyCodec({ name, historyBefore: (end) => historyBefore(host.session.log, end) })
    this.#messages = new TokenBucket(limits.MESSAGES_PER_SECOND, limits.MESSAGES_PER_SECOND * 2, now())
  }

  over(client: HostLink): HostLink {
    this.#client = client
    return {
      requestId: client.requestId,
      send: (data) => {
        const frame = decodeServer(data)
        if (frame === undefined) return 'lost'
        const outcome = this.#perform(this.#codec.fromSession(frame, this.#canTake))
        if (this.#codec.hasEnded) this.#deps.host.isEndTold = true
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
    const { host, link, mintIdentity } = this.#deps
    host.received(link, this.#codec.hello(mintIdentity(), host.session.resizes.current))
  }

  heard(message: string | Uint8Array): void {
    if (this.#isClosed) return
    if (this.#messages.take(1, this.#deps.now())) {
      const outcome = this.#perform(this.#codec.fromClient(message, this.#canTake))
      if (outcome === 'lost') this.#client?.terminate()
      return
    }
    const { told, ...end } = envelopeEndOf(new SandwireError('rate_limited', 'Cannot take more messages now'))
    this.#client?.send(encodePty(told))
    this.#close(end)
  }

  left(): void {
    const { host, link } = this.#deps
    host.received(link, '{"type":"detach"}')
  }

  #close({ code, reason }: { readonly code: number; readonly reason: string }): void {
    this.#isClosed = true
    this.#client?.close(code, reason)
  }

  /** Whether nobody drives, or somebody who knows no roles either. */
  get #canTake(): boolean {
    const { host, now } = this.#deps
    const { roster } = host.session
    const { holder } = roster.lease
    const isShared = holder !== null && roster.ofId(holder)?.isRelayed === true
    return isShared || roster.lease.isClaimable(now())
  }

  /** Says what became of the last text for the client. */
  #perform(effects: readonly PtyEffect[]): SendOutcome {
    const { host, link } = this.#deps
    let outcome: SendOutcome = 'sent'
    for (const effect of effects) {
      if (effect.do === 'pass') host.received(link, effect.frame)
      else outcome = this.#client?.send(effect.text) ?? 'lost'
      if (outcome === 'lost') break
    }
    return outcome
  }
}
