import { encodeCompatMessage } from '@sandwire/internal-api'
import { limits, type SandwireError, TokenBucket } from '@sandwire/protocol'
import type { ExecCodec, ExecEffect } from './exec-codec.ts'
import type { ExecConnection, ExecEvent } from './exec-connection.ts'
import { InputQueue } from './input-queue.ts'
import { MAX_UNACKNOWLEDGED_BYTES, type RelayedSocket } from './relay.ts'

/** Input of one client that may wait for the sprite. */
const QUEUE_LIMITS = { maxBytes: 4 * 1024 * 1024, maxMessages: 4_096 }
/** Earlier output comes within this time, where it is not known whether there is any. */
const REPLAY_MS = 200
/** All earlier output has come after this time. */
const MAX_REPLAY_MS = 5_000
/** Until a process that must answer first has done so. */
const START_MS = 60_000
/** Output that one session passes on before the other sessions of the sandbox have a turn. */
const TURN_BYTES = 256 * 1024

/** The connection to the process. */
export type BridgedExec = Pick<ExecConnection, 'read' | 'readWithin' | 'write' | 'resize' | 'close'>

export interface ExecBridgeDependencies {
  readonly nowMs: () => number
  /** Calls repeatedly; returns what stops it. */
  readonly every: (ms: number, run: () => void) => () => void
  /** Resolves after other work had a turn. */
  readonly yieldTurn: () => Promise<void>
  readonly heartbeatMs: number
  /** Input or output was passed on. */
  readonly onActivity: (kind: 'input' | 'output', bytes: number) => void
  readonly onExit: () => void
  /** The process is of no use to any client. */
  readonly onRefuse: () => void
  /** Sends a text to the other clients of the session. */
  readonly toOthers: (text: string) => void
  /** The connection of the client has ended, with this code. Called once. */
  readonly onEnd: (code: number) => void
}

const PONG = encodeCompatMessage({ type: 'pong' })

/** Carries one client's connection to a process of the exec API. */
export class ExecBridge {
  readonly #client: RelayedSocket
  readonly #exec: BridgedExec
  readonly #codec: ExecCodec
  readonly #deps: ExecBridgeDependencies
  readonly #queue = new InputQueue(QUEUE_LIMITS)
  readonly #messages: TokenBucket
  readonly #stopHeartbeat: () => void
  #sentBytes = 0
  #turnBytes = 0
  #isWriting = false
  #isEnded = false

  constructor(client: RelayedSocket, exec: BridgedExec, codec: ExecCodec, deps: ExecBridgeDependencies) {
    this.#client = client
    this.#exec = exec
    this.#codec = codec
    this.#deps = deps
    this.#messages = new TokenBucket(limits.MESSAGES_PER_SECOND, limits.MESSAGES_PER_SECOND * 2, deps.nowMs())
    // workerd sends no WebSocket pings; a message that clients ignore keeps the connection open and reveals a broken one.
    this.#stopHeartbeat = deps.every(deps.heartbeatMs, () => this.#send(PONG))
  }

  /** Passes on the process's output until it exits or either side ends. */
  async run(): Promise<void> {
    const stopWaiting = this.#codec.isStarted ? undefined : this.#awaitStart()
    try {
      this.#perform(this.#codec.greeting())
      const isOpen = await this.#replay()
      while (isOpen && !this.#isEnded && !this.#codec.hasExited) {
        const event = await this.#exec.read()
        // The codec takes what it receives for sent, so that later clients would not get it.
        if (event === undefined || this.#isEnded) break
        this.#receive(event)
        await this.#shareTurn()
      }
    } catch {
      // The connection to the sprite broke.
    }
    stopWaiting?.()
    // The connection of a terminal's client stays open after an exit, because front ends reconnect after a close.
    if (this.#codec.hasExited) this.#exec.close()
    else this.#endWith('sandbox_unreachable', 'The connection to the process was lost: connect again')
  }

  /** A message of the client. */
  receive(message: string | Uint8Array): void {
    if (this.#isEnded) return
    if (!this.#messages.take(1, this.#deps.nowMs()))
      return this.#endWith('rate_limited', 'Cannot take more messages now')
    this.#perform(this.#codec.fromClient(message))
  }

  /** The client closed its side: the process continues without it. */
  clientClosed(code: number): void {
    this.#finish(code)
  }

  /** A text that another client's message led to. */
  notify(text: string): void {
    this.#send(text)
  }

  /** Closes the client's connection for an error. */
  end({ code, message }: Pick<SandwireError, 'code' | 'message'>): void {
    const { last, ...close } = this.#codec.closeOf({ code, message })
    if (this.#isEnded) return
    this.#send(last)
    this.#close(close)
  }

  /** Earlier output, which is no activity. False: a connection ended before all of it had come. */
  async #replay(): Promise<boolean> {
    const untilMs = this.#deps.nowMs() + MAX_REPLAY_MS
    const isOver = (): boolean => this.#isEnded || this.#codec.hasExited || this.#deps.nowMs() >= untilMs
    while (!isOver()) {
      const { replay } = this.#codec
      if (replay === 'none') break
      const event = await this.#exec.readWithin(replay === 'possible' ? REPLAY_MS : MAX_REPLAY_MS)
      if (event === undefined || this.#isEnded) return false
      if (event === 'none') break
      if (event.kind === 'output') this.#perform(this.#codec.output(event))
      else this.#receive(event)
    }
    this.#perform(this.#codec.replayed())
    return true
  }

  /** A process that does not answer is of no use. Returns what stops waiting. */
  #awaitStart(): () => void {
    const stop = this.#deps.every(START_MS, () => {
      stop()
      if (!this.#codec.isStarted) this.#refuse('The program in the sprite does not respond')
    })
    return stop
  }

  #refuse(message: string): void {
    this.#endWith('agent_not_configured', message)
    this.#deps.onRefuse()
  }

  #receive(event: ExecEvent): void {
    if (event.kind === 'output') {
      this.#deps.onActivity('output', event.bytes.length)
      this.#turnBytes += event.bytes.length
      this.#perform(this.#codec.output(event))
      if (this.#sentBytes > MAX_UNACKNOWLEDGED_BYTES)
        this.#endWith('rate_limited', 'Much output was sent: connect again to continue')
    } else if (event.kind === 'cut') this.#perform(this.#codec.cut())
    else {
      this.#deps.onExit()
      this.#perform(this.#codec.exit(event.code))
    }
  }

  async #shareTurn(): Promise<void> {
    if (this.#turnBytes < TURN_BYTES) return
    this.#turnBytes = 0
    await this.#deps.yieldTurn()
  }

  #perform(effects: readonly ExecEffect[]): void {
    for (const effect of effects) this.#performOne(effect)
    if (!this.#queue.isEmpty && !this.#isWriting) void this.#write()
  }

  #performOne(effect: ExecEffect): void {
    switch (effect.do) {
      case 'toClient':
        return this.#send(effect.text)
      case 'toOthers':
        return this.#deps.toOthers(effect.text)
      case 'close':
        return this.#close(effect)
      case 'refuse':
        return this.#refuse(effect.message)
      case 'write':
      case 'resize':
        if (!this.#isEnded && !this.#queue.push(effect))
          this.#endWith('input_overflow', 'Cannot take more input: the process does not read it')
    }
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
    this.end({ code, message })
  }

  #close({ code, reason }: { readonly code: number; readonly reason: string }): void {
    if (this.#isEnded) return
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
