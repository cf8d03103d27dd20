import { type CompatClose, compatClose, encodeCompatMessage } from '@sandwire/internal-api'
import { limits, type SandwireError, TokenBucket } from '@sandwire/protocol'
import type { ExecConnection, ExecEvent } from './exec-connection.ts'
import { InputQueue } from './input-queue.ts'
import { MAX_UNACKNOWLEDGED_BYTES, type RelayedSocket } from './relay.ts'
import type { TerminalCodec, TerminalEffect } from './terminal-codec.ts'

/** Input of one client that may wait for the sprite. */
const QUEUE_LIMITS = { maxBytes: 4 * 1024 * 1024, maxMessages: 4_096 }
/** The replay of earlier output begins within this time, where the API did not say whether there is any. */
const REPLAY_MS = 200
/** Output that one terminal passes on before the other terminals of the sandbox have a turn. */
const TURN_BYTES = 256 * 1024

/** The connection to the process. */
export type TerminalExec = Pick<ExecConnection, 'info' | 'read' | 'readWithin' | 'write' | 'resize' | 'close'>

export interface TerminalBridgeDependencies {
  readonly nowMs: () => number
  /** Calls repeatedly; returns what stops it. */
  readonly every: (ms: number, run: () => void) => () => void
  /** Resolves after other work had a turn. */
  readonly yieldTurn: () => Promise<void>
  readonly heartbeatMs: number
  /** Input or output was passed on. */
  readonly onActivity: (kind: 'input' | 'output', bytes: number) => void
  readonly onExit: () => void
  /** The connection of the client has ended, with this code. Called once. */
  readonly onEnd: (code: number) => void
}

const PONG = encodeCompatMessage({ type: 'pong' })

/** Carries one client's connection to a terminal of the exec API. */
export class TerminalBridge {
  readonly #client: RelayedSocket
  readonly #exec: TerminalExec
  readonly #codec: TerminalCodec
  readonly #deps: TerminalBridgeDependencies
  readonly #queue = new InputQueue(QUEUE_LIMITS)
  readonly #messages: TokenBucket
  readonly #stopHeartbeat: () => void
  #sentBytes = 0
  #turnBytes = 0
  #isWriting = false
  #isEnded = false

  constructor(
    client: RelayedSocket,
    exec: TerminalExec,
    codec: TerminalCodec,
    deps: TerminalBridgeDependencies,
  ) {
    this.#client = client
    this.#exec = exec
    this.#codec = codec
    this.#deps = deps
    this.#messages = new TokenBucket(limits.MESSAGES_PER_SECOND, limits.MESSAGES_PER_SECOND * 2, deps.nowMs())
    // workerd sends no WebSocket pings; a message that clients ignore keeps the connection open and reveals a broken one.
    this.#stopHeartbeat = deps.every(deps.heartbeatMs, () => this.#send(PONG))
  }

  /** Passes on the terminal's output until it exits or either side ends. `isNew`: it has no earlier output. */
  async run(isNew: boolean): Promise<void> {
    try {
      this.#perform([this.#codec.greeting()])
      if (!isNew && this.#exec.info.historyBytes !== 0) await this.#replay()
      while (!this.#isEnded && !this.#codec.hasExited) {
        const event = await this.#exec.read()
        if (event === undefined) break
        this.#receive(event)
        await this.#shareTurn()
      }
    } catch {
      // The connection to the sprite broke.
    }
    // The connection of the client stays open after an exit, because front ends reconnect after a close.
    if (this.#codec.hasExited) this.#exec.close()
    else this.#endWith('sandbox_unreachable', 'The connection to the terminal was lost: connect again')
  }

  /** A message of the client. */
  receive(message: string | Uint8Array): void {
    if (this.#isEnded) return
    if (!this.#messages.take(1, this.#deps.nowMs()))
      return this.#endWith('rate_limited', 'Cannot take more messages now')
    this.#perform(this.#codec.fromClient(message))
  }

  /** The client closed its side: the terminal continues without it. */
  clientClosed(code: number): void {
    this.#finish(code)
  }

  /** Closes the client's connection for an error. */
  end(error: Pick<SandwireError, 'code' | 'message'>): void {
    this.#close(compatClose(error))
  }

  async #replay(): Promise<void> {
    const event = await this.#exec.readWithin(REPLAY_MS)
    if (event === 'none') return
    if (event?.kind === 'output') return this.#perform(this.#codec.history(event.bytes))
    if (event !== undefined) this.#receive(event)
  }

  #receive(event: ExecEvent): void {
    if (event.kind === 'output') {
      this.#deps.onActivity('output', event.bytes.length)
      this.#turnBytes += event.bytes.length
      this.#perform(this.#codec.output(event.bytes))
      if (this.#sentBytes > MAX_UNACKNOWLEDGED_BYTES)
        this.#endWith('rate_limited', 'Much output was sent: connect again to continue')
    } else if (event.kind === 'exit') {
      this.#perform(this.#codec.exit(event.code))
      this.#deps.onExit()
    }
  }

  async #shareTurn(): Promise<void> {
    if (this.#turnBytes < TURN_BYTES) return
    this.#turnBytes = 0
    await this.#deps.yieldTurn()
  }

  #perform(effects: readonly TerminalEffect[]): void {
    for (const effect of effects) {
      if (effect.do === 'toClient') this.#send(effect.text)
      else if (!this.#queue.push(effect))
        return this.#endWith('input_overflow', 'Cannot take more input: the terminal does not read it')
    }
    if (!this.#queue.isEmpty && !this.#isWriting) void this.#write()
  }

  async #write(): Promise<void> {
    this.#isWriting = true
    try {
      while (!this.#queue.isEmpty) await this.#writeNext()
    } catch {
      // The loop of `run` notices the end of the connection.
    }
    this.#isWriting = false
  }

  async #writeNext(): Promise<void> {
    const inputs = this.#queue.take()
    const [first] = inputs
    if (first?.do === 'resize') return this.#exec.resize(first.cols, first.rows)
    const chunks = inputs.flatMap((input) => (input.do === 'write' ? [input.bytes] : []))
    this.#deps.onActivity(
      'input',
      chunks.reduce((total, { length }) => total + length, 0),
    )
    await this.#exec.write(...chunks)
  }

  #send(text: string): void {
    if (this.#isEnded) return
    this.#sentBytes += text.length
    try {
      this.#client.send(text)
    } catch {
      // It is closed, which its close event reports.
    }
  }

  #endWith(code: SandwireError['code'], message: string): void {
    this.#close(compatClose({ code, message }))
  }

  #close({ last, code, reason }: CompatClose): void {
    if (this.#isEnded) return
    this.#send(encodeCompatMessage(last))
    try {
      this.#client.close(code, reason)
    } catch {
      // It is closed.
    }
    this.#finish(code)
  }

  #finish(code: number): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#stopHeartbeat()
    this.#exec.close()
    this.#deps.onEnd(code)
  }
}
