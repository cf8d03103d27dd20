import { withoutTerminalReplies } from '@sandwire/client'
import type { TerminalState } from './controller.ts'

type Known = Pick<TerminalState, 'status' | 'role' | 'authority' | 'presence' | 'attachment'>

/** Bounds the input held until the server answers. */
const MAX_HELD_BYTES = 1024 * 1024

/** Mouse reports, in both encodings. */
const MOUSE = new RegExp(['\\x1b\\[<[0-9;]+[Mm]', '\\x1b\\[M[^]{3}'].join('|'), 'g')

/** True when a viewer may take the lease without taking it from anyone: it is neither held nor reserved. */
export function isLeaseFree({ status, role, authority, presence }: Known): boolean {
  return (
    status.kind === 'attached' && role === 'viewer' && authority === 'driver' && presence?.driver === null
  )
}

/** True when the user typed something, as opposed to replies of the terminal. */
function isTyped(bytes: Uint8Array): boolean {
  const text = Array.from(withoutTerminalReplies(bytes), (byte) => String.fromCharCode(byte)).join('')
  return text.replace(MOUSE, '') !== ''
}

/**
 * Input typed while nobody has the lease. It requests the lease and holds the input: the input is sent when the lease
 * arrives, and reported lost when another attachment got it or the connection dropped.
 */
export class LeaseOnInput {
  readonly #ask: () => void
  readonly #send: (bytes: Uint8Array) => void
  readonly #lost: (bytes: number) => void
  #held: Uint8Array[] = []
  #heldBytes = 0
  #isAsking = false

  constructor(parts: {
    readonly ask: () => void
    readonly send: (bytes: Uint8Array) => void
    readonly lost: (bytes: number) => void
  }) {
    this.#ask = parts.ask
    this.#send = parts.send
    this.#lost = parts.lost
  }

  /** Call only while the lease is free. */
  hold(bytes: Uint8Array): void {
    if (!isTyped(bytes)) return
    if (!this.#isAsking) this.#ask()
    this.#isAsking = true
    if (this.#heldBytes + bytes.byteLength > MAX_HELD_BYTES) return this.#lost(bytes.byteLength)
    this.#held.push(bytes)
    this.#heldBytes += bytes.byteLength
  }

  /** Checks after every state change whether the lease arrived. */
  settle(state: Known): void {
    const { status, role, presence, attachment } = state
    const driver = presence?.driver ?? null
    const isWaiting =
      status.kind === 'attached' && role === 'viewer' && (driver === null || driver === attachment)
    if (isWaiting) return
    const [held, heldBytes] = [this.#held, this.#heldBytes]
    this.#held = []
    this.#heldBytes = 0
    this.#isAsking = false
    if (status.kind === 'attached' && role !== 'viewer') for (const bytes of held) this.#send(bytes)
    else if (heldBytes > 0) this.#lost(heldBytes)
  }
}
