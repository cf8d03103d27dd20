import type { Socket } from 'bun'

/** One end of a connection. */
export interface End {
  /** Set as long as bytes are carried. */
  connection: SpliceConnection | undefined
  /** Bytes of the other end that this one has not taken yet: the rest of one chunk. */
  rest: Uint8Array | undefined
  /** The other end sends nothing more, which is said on when `rest` is taken. */
  isFinishing: boolean
  /** The socket is closed. */
  isGone: boolean
}

export type SpliceSocket = Socket<End>

export function createEnd(): End {
  return { connection: undefined, rest: undefined, isFinishing: false, isGone: false }
}

/**
 * Two sockets joined: each chunk of one is written to the other as it is. An end that does not take a chunk whole stops the
 * other from being read until it has, so what is held is bounded by a chunk each way.
 */
export class SpliceConnection {
  readonly #ends: readonly [SpliceSocket, SpliceSocket]
  readonly #onClosed: () => void
  #isClosed = false

  constructor(ends: readonly [SpliceSocket, SpliceSocket], onClosed: () => void) {
    this.#ends = ends
    this.#onClosed = onClosed
    for (const end of ends) end.data.connection = this
  }

  received(from: SpliceSocket, bytes: Uint8Array): void {
    const to = this.#other(from)
    if (to.data.isGone) return
    if (to.data.rest === undefined) this.#write(to, bytes)
    // Read before the pause took effect.
    else to.data.rest = Buffer.concat([to.data.rest, bytes])
    if (to.data.rest !== undefined) from.pause()
  }

  /** The kernel takes bytes of this end again. */
  drained(to: SpliceSocket): void {
    const { rest } = to.data
    if (rest === undefined) return
    to.data.rest = undefined
    this.#write(to, rest)
    if (to.data.rest !== undefined || this.#isClosed) return
    if (to.data.isFinishing) this.#finish(to)
    else this.#other(to).resume()
  }

  /** This end sends nothing more; the other direction goes on. */
  ended(from: SpliceSocket): void {
    const to = this.#other(from)
    if (to.data.isFinishing) return
    to.data.isFinishing = true
    if (to.data.rest === undefined) this.#finish(to)
  }

  /** This end is closed. What it sent before still arrives. */
  gone(from: SpliceSocket, hasFailed: boolean): void {
    const to = this.#other(from)
    from.data.isGone = true
    from.data.rest = undefined
    if (hasFailed || to.data.isGone) {
      this.destroy()
      return
    }
    to.data.isFinishing = true
    // Nothing it says arrives any more, but its end does, which nobody sees while it is not read.
    to.resume()
    if (to.data.rest === undefined) this.#finish(to)
  }

  /** Cuts both ends at once. */
  destroy(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const end of this.#ends) {
      end.data.connection = undefined
      end.data.rest = undefined
      end.terminate()
    }
    this.#onClosed()
  }

  #write(to: SpliceSocket, bytes: Uint8Array): void {
    const taken = to.write(bytes)
    if (taken < 0) this.destroy()
    // A copy, so that a reader that stalls holds what it has not taken and not the whole chunk.
    else if (taken < bytes.length) to.data.rest = bytes.slice(taken)
  }

  /** Passes an end on: of one direction, or of all when nobody is there to answer. */
  #finish(to: SpliceSocket): void {
    if (to.data.isGone) return
    if (this.#other(to).data.isGone) to.end()
    else to.shutdown()
  }

  #other(end: SpliceSocket): SpliceSocket {
    return end === this.#ends[0] ? this.#ends[1] : this.#ends[0]
  }
}
