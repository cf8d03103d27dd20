import { SandwireError, SUBPROTOCOL } from '@sandwire/protocol'
import type { AttachOptions } from './attach-options.ts'
import { attachUrl } from './attach-url.ts'
import { explainRefusal, parseCloseReason, type RefusalReason } from './refusal.ts'
import { openWebSocket, type Socket } from './socket.ts'

/** How the connection to a server is asked for, out of what an attachment was asked for. */
export type ConnectionOptions = Pick<
  AttachOptions,
  'url' | 'request' | 'credentials' | 'renewCredentials' | 'openSocket'
>

/** What the attachment hears of its connection. */
export interface ConnectionEvents {
  opened(): void
  message(data: string | Uint8Array): void
  /** The socket is closed; `lost` follows unless nobody waits for the connection any more. */
  closed(): void
  /** It is over, or never came to be; `reason` is what could be learnt of why. */
  lost(reason: RefusalReason | undefined): void
  /** Whether the attachment still waits for it. */
  isWanted(): boolean
}

const DETACH_CLOSE = 1000

/** Outside browsers there is no page; what has no origin is `null` to itself too. */
function pageOrigin(): string | undefined {
  return typeof location === 'undefined' ? undefined : location.origin
}

/** One connection: its credentials, which are made anew once when they are refused, its socket, and why it went. */
export class Connection {
  readonly #options: ConnectionOptions
  readonly #identity: { readonly createId: string; readonly session: string | undefined }
  readonly #events: ConnectionEvents
  #socket: Socket | undefined
  #isOpen = false
  #isClosing = false
  #isRenewed = false

  constructor(
    options: ConnectionOptions,
    identity: { readonly createId: string; readonly session: string | undefined },
    events: ConnectionEvents,
  ) {
    this.#options = options
    this.#identity = identity
    this.#events = events
  }

  /** True from the opening of a socket until it is closed. */
  get hasSocket(): boolean {
    return this.#socket !== undefined
  }

  async connect(): Promise<void> {
    try {
      const url = attachUrl(this.#options.url, this.#options.request, this.#identity)
      // Who lets go at once, as React's strict mode does, asks for nothing.
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
            this.#isOpen = true
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

  /** Nobody waits for it any more. */
  close(): void {
    this.#isClosing = true
    this.#socket?.close(DETACH_CLOSE, '')
  }

  #isWanted(): boolean {
    return !this.#isClosing && this.#events.isWanted()
  }

  #fail(error: unknown): void {
    const { code, message } = SandwireError.from(error)
    this.#events.lost({ code, message })
  }

  async #closed(
    request: { url: URL; headers: Readonly<Record<string, string>> },
    known: RefusalReason | undefined,
  ): Promise<void> {
    this.#socket = undefined
    this.#events.closed()
    if (!this.#events.isWanted()) return
    const reason = known ?? (this.#isOpen ? undefined : await explainRefusal(request, fetch, pageOrigin()))
    if (reason?.code === 'unauthorized' && !this.#isOpen && !this.#isRenewed) {
      try {
        if (await this.#options.renewCredentials?.()) {
          this.#isRenewed = true
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
