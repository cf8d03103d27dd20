import type { LinkId, OutputStream } from '@sandwire/protocol'
import type { SendOutcome } from './socket-link.ts'

/** One connection as a session needs it. */
export interface HostLink {
  /** The request that became this connection. */
  readonly requestId: string
  send(data: string | Uint8Array): SendOutcome
  /** Sends output as one data frame; `bytes` are read before this returns. */
  sendOutput(stream: OutputStream, bytes: Uint8Array): SendOutcome
  close(code: number, reason: string): void
  /** Cuts the connection without a goodbye. */
  terminate(): void
  /** The process took input; one that was held back because of it may go on. */
  inputSettled(): void
}

/** The connections of one session. */
export class SessionLinks {
  readonly #links = new Map<LinkId, HostLink>()
  /** Those that became an attachment; what closes another one with a reason has refused it. */
  readonly #admitted = new Set<LinkId>()
  /** Called whenever the last one is gone. */
  #onVacant: () => void = () => undefined

  add(id: LinkId, link: HostLink): void {
    this.#links.set(id, link)
  }

  remove(id: LinkId): void {
    this.#links.delete(id)
    this.#admitted.delete(id)
    if (this.#links.size === 0) this.#onVacant()
  }

  find(id: LinkId): HostLink | undefined {
    return this.#links.get(id)
  }

  isAdmitted(id: LinkId): boolean {
    return this.#admitted.has(id)
  }

  admit(id: LinkId): void {
    this.#admitted.add(id)
  }

  inputSettled(): void {
    for (const link of this.#links.values()) link.inputSettled()
  }

  /** Resolves when none is left, or at the deadline. */
  whenVacant(waitMs: number): Promise<void> {
    if (this.#links.size === 0) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, waitMs)
    this.#onVacant = () => {
      clearTimeout(timer)
      resolve()
    }
    return promise
  }
}
