import type { Role } from '../client-frames.ts'
import { SandwireError } from '../errors.ts'
import type { EffectBuffer } from './effect-buffer.ts'
import { type Outgoing, SendLog, type UnsequencedControl } from './send-log.ts'

/** Position in an attachment's input. */
interface InputPosition {
  readonly at: number
  readonly seq: number
}

/** Sends input as far as role and credit allow, and again after a lost connection. */
export class InputSender {
  readonly #effects: EffectBuffer
  readonly #maxBytes: number
  readonly #log = new SendLog()
  #role: Role = 'viewer'
  /** Size of this client's terminal. */
  #size: { cols: number; rows: number }
  /** Size the server last confirmed or was sent; a driver keeps it equal to `#size`. */
  #sizeSent: { cols: number; rows: number } | undefined
  /** Input may be sent up to this offset. */
  #limit = 0
  #windowBytes = 0
  /** The process no longer reads input. */
  #isClosed = false
  /** Set when a write filled the queue; cleared by the effect `writable`. */
  #isWriterWaiting = false

  constructor(effects: EffectBuffer, maxBytes: number, size: { cols: number; rows: number }) {
    this.#effects = effects
    this.#maxBytes = maxBytes
    this.#size = size
  }

  get role(): Role {
    return this.#role
  }

  get size(): { cols: number; rows: number } {
    return this.#size
  }

  get heldBytes(): number {
    return this.#log.heldBytes
  }

  get isEmpty(): boolean {
    return this.#log.isEmpty
  }

  get canWrite(): boolean {
    return this.#log.heldBytes < this.#maxBytes
  }

  /** Queues input. Before the first welcome it is queued for any role. */
  write(bytes: Uint8Array, isAttached: boolean): void {
    const isRefused = isAttached && this.#role === 'viewer'
    if (this.#isClosed) this.#reportLoss(bytes.byteLength, 'stdinClosed')
    else if (isRefused) this.#reportLoss(bytes.byteLength, 'role')
    else this.#log.write(bytes)
    this.#isWriterWaiting = !this.canWrite
  }

  control(message: UnsequencedControl, isAttached: boolean): void {
    if (message.type === 'resize') {
      this.#size = { cols: message.cols, rows: message.rows }
      this.#syncSize()
    } else if (!isAttached || this.#role === 'driver') this.#log.queueControl(message)
  }

  /** Continues on a new connection; an error means the two sides disagree. */
  welcome(welcome: {
    role: Role
    input: InputPosition
    inputWindow: number
    isResume: boolean
  }): SandwireError | undefined {
    const { role, input, inputWindow, isResume } = welcome
    this.#windowBytes = inputWindow
    this.#limit = input.at
    if (!isResume) this.#sizeSent = { ...this.#size }
    this.setRole(role, input)
    if (this.#log.rewind(input.at, input.seq)) return undefined
    return new SandwireError('desync', `Cannot resume input: the server has taken ${input.at}`)
  }

  /** The server has settled input, which gives credit for more. */
  acked(at: number, seq: number): SandwireError | undefined {
    if (!this.#log.acknowledge(at, seq)) {
      return new SandwireError('desync', `The server acknowledged input ${at} that was not sent`)
    }
    this.#limit = Math.max(this.#limit, at + this.#windowBytes)
    if (this.canWrite) this.releaseWriter()
    return undefined
  }

  /** The process does not read input from `at` on. */
  close(at: number): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#reportLoss(Math.max(0, this.#log.sentAt - at) + this.#log.dropQueuedBytes(), 'stdinClosed')
    this.releaseWriter()
  }

  /** Sets the role. A lesser role discards input that the server has not accepted. */
  setRole(role: Role, input: InputPosition): void {
    const isNarrower = role === 'viewer' || (role === 'collaborator' && this.#role === 'driver')
    this.#role = role
    if (role === 'collaborator') this.#log.dropQueuedControls()
    if (isNarrower) {
      this.#sizeSent = undefined
      const dropped = this.#log.discard(input.at, input.seq)
      // After stdin was closed, the loss was already reported.
      if (!this.#isClosed) this.#reportLoss(dropped, 'role')
      this.releaseWriter()
    }
    this.#syncSize()
  }

  /** Lets a waiting writer continue. */
  releaseWriter(): void {
    if (this.#isWriterWaiting) this.#effects.push({ do: 'writable' })
    this.#isWriterWaiting = false
  }

  /** The next frame to send, as far as role and credit allow. */
  next(): Outgoing | undefined {
    return this.#role === 'viewer' ? undefined : this.#log.next(this.#limit)
  }

  #reportLoss(bytes: number, why: 'role' | 'stdinClosed'): void {
    if (bytes > 0) this.#effects.push({ do: 'inputLost', bytes, why })
  }

  /** The driver's terminal sets the size of the session's terminal. */
  #syncSize(): void {
    const { cols, rows } = this.#size
    if (this.#role !== 'driver' || (this.#sizeSent?.cols === cols && this.#sizeSent.rows === rows)) return
    this.#sizeSent = { cols, rows }
    this.#log.queueControl({ type: 'resize', cols, rows })
  }
}
