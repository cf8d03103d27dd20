import { SandwireError } from '@sandwire/protocol'
import type { Selector } from '../sandbox/revocation.ts'
import type { Caller } from '../sandbox/sandboxd-client.ts'

/** Open requests of one account in one sandbox; a browser opens six. */
const MAX_PER_ACCOUNT = 64
/** Of all accounts: each holds a connection and a little memory. */
const MAX_OPEN = 512

/** What authorizes a request. */
export type Authorization = Pick<Caller, 'identity' | 'login' | 'grant'>

function timedOut(): SandwireError {
  return new SandwireError('timed_out', 'The sandbox does not respond in time')
}

/** A proxied request, open until its response has been read or it is aborted. */
export class ProxiedRequest {
  readonly authorization: Authorization
  readonly #controller = new AbortController()
  readonly #onEnd: (request: ProxiedRequest) => void
  #clearTimeout: () => void = () => undefined
  #hasResponse = false
  #hasEnded = false

  constructor(authorization: Authorization, onEnd: (request: ProxiedRequest) => void) {
    this.authorization = authorization
    this.#onEnd = onEnd
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Aborts it when the client disconnects. */
  follow(client: AbortSignal): void {
    const onDisconnect = (): void =>
      this.abort(new SandwireError('link_lost', 'Cannot respond: the client has disconnected'))
    if (client.aborted) onDisconnect()
    else client.addEventListener('abort', onDisconnect, { once: true, signal: this.signal })
  }

  /** Aborts it unless the response begins in time; a later call replaces the timeout. */
  expectResponse(ms: number): void {
    if (!this.#hasResponse) this.#setTimeout(ms)
  }

  /** The response has begun and must end within this time. */
  beginResponse(lastByteMs: number): void {
    this.#hasResponse = true
    this.#setTimeout(lastByteMs)
  }

  /** Aborts it because of its body, unless the response has begun. */
  refuse(reason: SandwireError): void {
    if (!this.#hasResponse) this.abort(reason)
  }

  /** Aborts it because the sandbox does not read its body, unless the response has begun. */
  timeOutBody(): void {
    this.refuse(timedOut())
  }

  /** Aborts it: the pending response fails with the reason, one being read breaks off. */
  abort(reason: SandwireError): void {
    this.#controller.abort(reason)
    this.end()
  }

  end(): void {
    this.#hasEnded = true
    this.#clearTimeout()
    this.#onEnd(this)
  }

  #setTimeout(ms: number): void {
    this.#clearTimeout()
    if (this.#hasEnded) return
    const timer = setTimeout(() => this.abort(timedOut()), ms)
    this.#clearTimeout = () => clearTimeout(timer)
  }
}

/** The open proxied requests of a sandbox. Control carries them, so it aborts them itself when their authorization is revoked. */
export class ProxiedRequests {
  readonly #open = new Set<ProxiedRequest>()

  open({ identity, login, grant }: Authorization): ProxiedRequest {
    const own = [...this.#open].filter(({ authorization }) => authorization.identity === identity)
    if (own.length >= MAX_PER_ACCOUNT || this.#open.size >= MAX_OPEN)
      throw new SandwireError('rate_limited', 'Too many file requests are open in this sandbox', {
        retryAfterMs: 1_000,
      })
    const authorization = {
      identity,
      ...(login === undefined ? {} : { login }),
      ...(grant === undefined ? {} : { grant }),
    }
    const request = new ProxiedRequest(authorization, (ended) => void this.#open.delete(ended))
    this.#open.add(request)
    return request
  }

  get size(): number {
    return this.#open.size
  }

  /** Aborts the requests that match every given field. */
  revoke({ identity, session, grant, login }: Selector): void {
    // Files belong to no session.
    if (session !== undefined) return
    const matches = (wanted: string | undefined, value: string | undefined): boolean =>
      wanted === undefined || wanted === value
    for (const request of this.#open) {
      const { authorization } = request
      if (
        matches(identity, authorization.identity) &&
        matches(grant, authorization.grant) &&
        matches(login, authorization.login)
      )
        request.abort(new SandwireError('revoked', 'Access to the sandbox was revoked'))
    }
  }
}
