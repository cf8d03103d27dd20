import {
  type ClientMessage,
  encode,
  encodePty,
  envelopeEnd,
  type EnvelopeEnd,
  type FromServer,
  isErrorCode,
  limits,
  PROTOCOL_VERSION,
  type PtyServerMessage,
  type Role,
  type ServerMessage,
  type WireMessage,
} from '@sandwire/protocol'
import { readPtyMessage } from './pty-message.ts'

/** What the translator wants done, in order. */
export type PtyEffect =
  /** A text for the client. */
  | { readonly do: 'tell'; readonly text: string }
  /** A `sandwire.v1` frame for the session. */
  | { readonly do: 'pass'; readonly frame: WireMessage }

export interface PtyCodecOptions {
  /** What the client is told that its session is called. */
  readonly name: string
  /** The output up to an offset. */
  readonly historyBefore: (end: number) => Uint8Array
}

/** Makes a terminal forget what it shows: a whole screen follows. */
const RESET = '\u001bc'

/** Close of a conversation that ended as it should. */
const GOODBYE = { code: 1000, reason: '' }

/** Translates between the messages of `/ws/pty` and the frames of a session, without any I/O. */
export class PtyCodec {
  readonly #options: PtyCodecOptions
  /** What follows the text in every output message. */
  readonly #outputTail: string
  /** Holds the first bytes of a character until the others come. */
  #decoder = createDecoder()
  #role: Role = 'viewer'
  #authority: Role = 'viewer'
  /** Input bytes and control messages that the session was given. */
  #input = { at: 0, seq: 0 }
  /** The process's end was told. */
  #hasEnded = false
  #isStopping = false
  /** How the session ends the connection, once it said why. */
  #end: EnvelopeEnd | undefined

  constructor(options: PtyCodecOptions) {
    this.#options = options
    this.#outputTail = `,"session_id":${JSON.stringify(options.name)}}`
  }

  /** The process's end was told to the client. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** First frame to the session. Nobody who comes later changes the size by coming. */
  hello(identity: string, size: { readonly cols: number; readonly rows: number }): string {
    return encode({
      type: 'hello',
      version: PROTOCOL_VERSION,
      identity,
      resuming: false,
      received: 0,
      window: limits.MAX_WINDOW_BYTES,
      cols: size.cols,
      rows: size.rows,
    })
  }

  /** A message of the client. `canTake`: nobody drives who would mind. */
  fromClient(message: string | Uint8Array, canTake: boolean): readonly PtyEffect[] {
    const request = readPtyMessage(message)
    switch (request.is) {
      case 'ping':
        return [pass({ type: 'ping', id: 0 })]
      case 'wrong':
        return [tell({ type: 'error', data: request.why })]
      case 'input':
        return this.#typed(request.bytes)
      case 'resize':
        return this.#resized(request, canTake)
    }
  }

  /** A frame of the session that is not output. */
  fromSession(frame: FromServer<ServerMessage>, canTake: boolean): readonly PtyEffect[] {
    if (frame.kind === 'data') return this.output(frame.payload)
    const { message } = frame
    switch (message.type) {
      case 'welcome':
        this.#role = message.role
        this.#authority = message.authority
        return this.#introduce(message.output)
      case 'role':
        this.#role = message.role
        if (message.role === 'driver') return []
        // What was typed meanwhile was discarded; from here on it counts again.
        this.#input = { ...message.input }
        return [pass({ type: 'roleSeen', epoch: message.epoch })]
      case 'presence':
        return message.driver === null && canTake ? this.#take() : []
      case 'snapshot':
        this.#decoder = createDecoder()
        return [this.#output(RESET)]
      case 'exit':
        return this.#exited(message.code)
      case 'error':
        return this.#failed(message)
      case 'pong':
        return [tell({ type: 'pong' })]
      case 'ack':
      case 'gap':
      case 'resized':
      case 'stdinClosed':
      case 'asked':
        return []
    }
  }

  /** Output of the process, or of a screen. Of a character that is not whole yet nothing is said. */
  output(bytes: Uint8Array): readonly PtyEffect[] {
    const text = this.#decoder.decode(bytes, { stream: true })
    return text === '' ? [] : [this.#output(text)]
  }

  /**
   * How the client's connection is closed when the session closes its own; undefined: it stays. A front end opens a closed
   * connection again, so the end of a process is told and not followed by one.
   */
  closing(): { readonly code: number; readonly reason: string } | undefined {
    if (this.#end !== undefined) return this.#end
    return this.#hasEnded && !this.#isStopping ? undefined : GOODBYE
  }

  #introduce(end: number): readonly PtyEffect[] {
    const { name, historyBefore } = this.#options
    const history = this.#decoder.decode(historyBefore(end), { stream: true })
    const session = tell({ type: 'session', session_id: name })
    return history === '' ? [session] : [session, tell({ type: 'history', data: history })]
  }

  #typed(bytes: Uint8Array): readonly PtyEffect[] {
    if (this.#role === 'viewer')
      return [tell({ type: 'error', data: 'Cannot take input: this connection only watches' })]
    this.#input.at += bytes.byteLength
    return [{ do: 'pass', frame: bytes }]
  }

  /** Of those who type together, whoever resized last has the size; who may not drive follows theirs. */
  #resized({ cols, rows }: { cols: number; rows: number }, canTake: boolean): readonly PtyEffect[] {
    const taking = this.#role === 'driver' ? [] : canTake ? this.#take() : undefined
    if (taking === undefined || this.#authority !== 'driver') return []
    this.#input.seq += 1
    return [...taking, pass({ type: 'resize', cols, rows, ...this.#input })]
  }

  #take(): readonly PtyEffect[] {
    return this.#authority === 'driver' && this.#role !== 'driver' ? [pass({ type: 'take' })] : []
  }

  #exited(code: number | null): readonly PtyEffect[] {
    const rest = this.#decoder.decode()
    this.#hasEnded = true
    const exit = tell({ type: 'exit', code, session_id: this.#options.name })
    return rest === '' ? [exit] : [this.#output(rest), exit]
  }

  #failed(error: Extract<ServerMessage, { type: 'error' }>): readonly PtyEffect[] {
    const code = isErrorCode(error.code) ? error.code : 'internal'
    const end = envelopeEnd({ code, message: error.message })
    if (error.fatal) this.#end = end
    if (code === 'shutting_down') this.#isStopping = true
    const isOver = this.#hasEnded && this.#isStopping && !error.fatal
    return [tell(end.told), ...(isOver ? [pass({ type: 'detach' })] : [])]
  }

  #output(text: string): PtyEffect {
    return { do: 'tell', text: `{"type":"output","data":${JSON.stringify(text)}${this.#outputTail}` }
  }
}

function createDecoder(): TextDecoder {
  // A mark at the beginning is output like any other.
  return new TextDecoder('utf-8', { ignoreBOM: true })
}

function tell(message: PtyServerMessage): PtyEffect {
  return { do: 'tell', text: encodePty(message) }
}

function pass(message: ClientMessage): PtyEffect {
  return { do: 'pass', frame: encode(message) }
}
