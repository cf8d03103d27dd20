import { raceTimeout, withTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import { unreachable } from '../upstream.ts'
import {
  decodeExecFrame,
  encodeInput,
  encodeResize,
  encodeSignal,
  type ExecFrame,
  INPUT_END,
} from './exec-frames.ts'
import type { WebSocketClient } from './websocket-client.ts'
import type { WebSocketMessage } from './websocket-frames.ts'

/** After the text form of an exit, output may follow; without any for this long, it is complete. */
const EXIT_SILENCE_MS = 2_000
/** Messages before the session's description. */
const MAX_EARLY_MESSAGES = 64

export type ExecEvent =
  | { readonly kind: 'output'; readonly stream: 'stdout' | 'stderr'; readonly bytes: Uint8Array }
  /** Output is missing: the process had ended before the connection was open, and the API keeps 64 KiB of it. */
  | { readonly kind: 'cut' }
  | { readonly kind: 'exit'; readonly code: number }

/** What the API says about a session when a connection to it opens. */
export interface ExecInfo {
  readonly id: string
  /** When it was created. Ids are those of processes and occur again, so that only both together identify a session. */
  readonly createdSeconds: number
  /** Earlier output that is sent first; undefined: not known. */
  readonly historyBytes: number | undefined
}

type Next = { readonly message: WebSocketMessage | undefined }

/** A connection to a process of the exec API. */
export class ExecConnection {
  readonly info: ExecInfo
  readonly #socket: WebSocketClient
  readonly #isTty: boolean
  /** A read that outlasted its timeout; the next one continues it. */
  #pending: Promise<Next> | undefined
  /** The text form of the exit, until the last output has been read. */
  #exitCode: number | undefined
  #isDone = false
  /** Output is missing, which the next read says. */
  #isCut: boolean

  private constructor(socket: WebSocketClient, isTty: boolean, info: ExecInfo, isCut: boolean) {
    this.#socket = socket
    this.#isTty = isTty
    this.info = info
    this.#isCut = isCut
  }

  /** Waits for the description of the session; nothing may be sent before it. Closes the socket if that fails. */
  static async open(socket: WebSocketClient, isTty: boolean, timeoutMs: number): Promise<ExecConnection> {
    try {
      const { isCut, ...info } = await withTimeout(readInfo(socket, isTty), timeoutMs, unreachable)
      return new ExecConnection(socket, isTty, info, isCut)
    } catch (error) {
      socket.close()
      throw error instanceof SandwireError ? error : unreachable(error)
    }
  }

  /** The next event; undefined: the connection ended before the process. Throws when it breaks. After an exit there is none. */
  async read(): Promise<ExecEvent | undefined> {
    while (!this.#isDone) {
      if (this.#isCut) {
        this.#isCut = false
        return { kind: 'cut' }
      }
      const next = await this.#next()
      if (next === 'silent') return this.#exit()
      if (next === undefined) return this.#exitCode === undefined ? undefined : this.#exit()
      const frame = decodeExecFrame(next, this.#isTty)
      if (frame.kind === 'output') return frame
      if (frame.kind === 'history') this.#isCut = frame.isCut
      if (frame.kind === 'exit') {
        this.#exitCode = frame.code
        if (frame.isLast) return this.#exit()
      }
    }
    return undefined
  }

  /** The same, but `none` when nothing happens for this long. */
  async readWithin(ms: number): Promise<ExecEvent | undefined | 'none'> {
    const message = await this.#readMessage(ms)
    if (message === 'silent') return 'none'
    this.#pending = Promise.resolve({ message })
    return this.read()
  }

  write(...inputs: readonly Uint8Array[]): Promise<void> {
    return this.#socket.send(...inputs.map((bytes) => encodeInput(bytes, this.#isTty)))
  }

  /** Ends the input; a terminal has no end of input. */
  async endInput(): Promise<void> {
    if (!this.#isTty) await this.#socket.send(INPUT_END)
  }

  resize(cols: number, rows: number): Promise<void> {
    return this.#socket.send(encodeResize(cols, rows))
  }

  /** True when the API takes signals on this connection; else they go through its `kill` route. */
  get takesSignals(): boolean {
    const capabilities = this.#socket.headers.get('x-sprite-capabilities') ?? ''
    return capabilities.split(',').some((each) => each.trim() === 'signal')
  }

  signal(signal: string): Promise<void> {
    return this.#socket.send(encodeSignal(signal))
  }

  /** Detaches; the process continues. */
  close(): void {
    this.#socket.close()
  }

  #exit(): ExecEvent {
    this.#isDone = true
    return { kind: 'exit', code: this.#exitCode ?? 255 }
  }

  async #next(): Promise<WebSocketMessage | undefined | 'silent'> {
    if (this.#exitCode === undefined) return this.#readMessage(undefined)
    try {
      return await this.#readMessage(EXIT_SILENCE_MS)
    } catch {
      // The live service drops the connection of a terminal after the exit.
      return undefined
    }
  }

  async #readMessage(ms: number | undefined): Promise<WebSocketMessage | undefined | 'silent'> {
    this.#pending ??= this.#socket.read().then((message) => ({ message }))
    // Reported by the next read.
    this.#pending.catch(() => undefined)
    const next = ms === undefined ? await this.#pending : await raceTimeout(this.#pending, ms, undefined)
    if (next === undefined) return 'silent'
    this.#pending = undefined
    return next.message
  }
}

async function readInfo(
  socket: WebSocketClient,
  isTty: boolean,
): Promise<ExecInfo & { readonly isCut: boolean }> {
  let history: Extract<ExecFrame, { kind: 'history' }> | undefined
  for (let count = 0; count < MAX_EARLY_MESSAGES; count++) {
    const message = await socket.read()
    if (message === undefined) break
    const frame = decodeExecFrame(message, isTty)
    if (frame.kind === 'history') history = frame
    else if (frame.kind === 'info') {
      const { id, createdSeconds } = frame
      return { id, createdSeconds, historyBytes: history?.bytes, isCut: history?.isCut ?? false }
    } else if (frame.kind !== 'other') break
  }
  throw unreachable()
}
