/** Characters that may wait at one socket: more than a whole history. */
const MAX_SOCKET_CHARS = 16 * 1024 * 1024
/** Characters that may wait at all sockets of an account, in all conversations. */
const MAX_ACCOUNT_CHARS = 64 * 1024 * 1024

/**
 * Counts what was sent to sockets of conversations. The platform keeps in memory what a client does not read, without a limit, and
 * does not say how much that is. So everything counts until the socket is closed, and a socket that was sent too much has to be:
 * its client connects again with the number of its last entry.
 */
export class UnreadFrames {
  /** By account and socket. */
  readonly #sent = new Map<string, Map<string, number>>()

  /** Counts a frame; false when it must not be sent. */
  take(account: string, socket: string, chars: number): boolean {
    const sockets = this.#sent.get(account) ?? new Map<string, number>()
    const sent = (sockets.get(socket) ?? 0) + chars
    if (sent > MAX_SOCKET_CHARS || this.#total(account) + chars > MAX_ACCOUNT_CHARS) return false
    this.#sent.set(account, sockets.set(socket, sent))
    return true
  }

  /** True when nothing can be sent to another socket of the account. */
  isFull(account: string): boolean {
    return this.#total(account) > MAX_ACCOUNT_CHARS - MAX_SOCKET_CHARS / 16
  }

  /** A socket is closed, and with it goes what it had not read. */
  closed(account: string, socket: string): void {
    const sockets = this.#sent.get(account)
    sockets?.delete(socket)
    if (sockets?.size === 0) this.#sent.delete(account)
  }

  #total(account: string): number {
    return [...(this.#sent.get(account)?.values() ?? [])].reduce((sum, chars) => sum + chars, 0)
  }
}
