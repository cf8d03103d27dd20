import { withoutTerminalReplies } from '@sandwire/client'
import type { TerminalState } from './controller.ts'

type Known = Pick<TerminalState, 'status' | 'role' | 'authority' | 'presence' | 'attachment'>

/** More than anybody types or pastes before a server answers. */
const MAX_HELD_BYTES = 1024 * 1024

/** What a mouse sends to a program that asked for it, in both of its forms. */
const MOUSE = new RegExp(['\\x1b\\[<[0-9;]+[Mm]', '\\x1b\\[M[^]{3}'].join('|'), 'g')

/** Whether somebody who only watches may begin to drive without taking that from anybody: the lease is no one's, nor kept for anyone. */
export function isLeaseFree({ status, role, authority, presence }: Known): boolean {
  return status.is === 'attached' && role === 'viewer' && authority === 'driver' && presence?.driver === null
}

/** Whether a person typed something of it: the rest a terminal says by itself. */
function isTyped(bytes: Uint8Array): boolean {
  const text = Array.from(withoutTerminalReplies(bytes), (byte) => String.fromCharCode(byte)).join('')
  return text.replace(MOUSE, '') !== ''
}

/**
 * What is typed where nobody drives. It asks for the lease, which takes it from nobody, and waits: then it is sent, and when somebody
 * else was faster or the connection is cut it is lost, which is said.
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

  /** To be called only while it is free to drive. */
  hold(bytes: Uint8Array): void {
    if (!isTyped(bytes)) return
    if (!this.#isAsking) this.#ask()
    this.#isAsking = true
    if (this.#heldBytes + bytes.byteLength > MAX_HELD_BYTES) return this.#lost(bytes.byteLength)
    this.#held.push(bytes)
    this.#heldBytes += bytes.byteLength
  }

  /** Looks whether the lease has come, after anything that is known of it changed. */
  settle(state: Known): void {
    const { status, role, presence, attachment } = state
    const driver = presence?.driver ?? null
    const isWaiting =
      status.is === 'attached' && role === 'viewer' && (driver === null || driver === attachment)
    if (isWaiting) return
    const [held, heldBytes] = [this.#held, this.#heldBytes]
    this.#held = []
    this.#heldBytes = 0
    this.#isAsking = false
    if (status.is === 'attached' && role !== 'viewer') for (const bytes of held) this.#send(bytes)
    else if (heldBytes > 0) this.#lost(heldBytes)
  }
}
