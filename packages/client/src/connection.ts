import { SandwireError, SUBPROTOCOL } from '@sandwire/protocol'
import type { AttachOptions } from './attach-options.ts'
import { attachUrl } from './attach-url.ts'
import { explainRefusal, parseCloseReason, type RefusalReason } from './refusal.ts'
import { openWebSocket, type Socket } from './socket.ts'

/** The options of an attachment that its connections need. */
export type ConnectionOptions = Pick<
  AttachOptions,
  'url' | 'request' | 'credentials' | 'renewCredentials' | 'openSocket'
>

export interface ConnectionEvents {
  opened(): void
  message(data: string | Uint8Array): void
  /** The socket is closed. `lost` follows unless the connection is no longer wanted. */
  closed(): void
  /** The connection was lost or could not be opened. */
  lost(reason: RefusalReason | undefined): void
  /** True while the attachment needs this connection. */
  isWanted(): boolean
}

const DETACH_CLOSE = 1000

/** Undefined outside browsers. */
function pageOrigin(): string | undefined {
  return typeof location === 'undefined' ? undefined : location.origin
}

/** One connection: gets credentials, opens the socket, renews refused credentials once, and finds out why it was refused. */
export class Connection {
  readonly #options: ConnectionOptions
  readonly #identity: { readonly createId: string; readonly session: string | undefined }
  readonly #events: ConnectionEvents
  #state: 'opening' | 'open' | 'closing' = 'opening'
  #socket: Socket | undefined
  #hasRenewedCredentials = false

  constructor(
    options: ConnectionOptions,
    identity: { readonly createId: string; readonly session: string | undefined },
    events: ConnectionEvents,
  ) {
    this.#options = options
    this.#identity = identity
    this.#events = events
  }

  /** True until the socket is closed. */
  get hasSocket(): boolean {
    return this.#socket !== undefined
  }

  async connect(): Promise<void> {
    try {
      const url = attachUrl(this.#options.url, this.#options.request, this.#identity)
      // An attachment that is detached at once, as in React's strict mode, sends no request.
      await Promise.resolve()
      if (!this.#isWanted()) return
      const credentials = await this.#options.credentials?.()
      if (!this.#isWanted()) return
      const headers = credentials?.headers ?? {}
      const protocols = [SUBPROTOCOL, ...(credentials?.protocols ?? [])]
      const open = this.#options.openSocket ?? openWebSocket
      this.#socket = open(
        { url, protocols, headers },
        {
          opened: () => {
            if (this.#state === 'opening') this.#state = 'open'
            this.#events.opened()
          },
          message: (data) => this.#events.message(data),
          closed: (code, reason) => void this.#closed({ url, headers }, parseCloseReason(code, reason)),
        },
      )
    } catch (error) {
      this.#fail(error)
    }
  }

  send(data: string | Uint8Array): void {
    this.#socket?.send(data)
  }

  /** Closes the connection; its later events are ignored. */
  close(): void {
    this.#state = 'closing'
    this.#socket?.close(DETACH_CLOSE, '')
  }

  #isWanted(): boolean {
    return this.#state !== 'closing' && this.#events.isWanted()
  }

  #fail(error: unknown): void {
    const { code, message } = SandwireError.from(error)
    this.#events.lost({ code, message })
  }

  async #closed(
    request: { url: URL; headers: Readonly<Record<string, string>> },
    closeReason: RefusalReason | undefined,
  ): Promise<void> {
    this.#socket = undefined
    this.#events.closed()
    if (!this.#isWanted()) return
    const wasOpen = this.#state === 'open'
    const reason = closeReason ?? (wasOpen ? undefined : await explainRefusal(request, fetch, pageOrigin()))
    if (reason?.code === 'unauthorized' && !wasOpen && !this.#hasRenewedCredentials) {
      try {
        if (await this.#options.renewCredentials?.()) {
          this.#hasRenewedCredentials = true
          if (this.#isWanted()) await this.connect()
          return
        }
      } catch (error) {
        this.#fail(error)
        return
      }
    }
    this.#events.lost(reason)
  }
}
