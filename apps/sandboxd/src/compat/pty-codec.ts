import {
  compatClose,
  type CompatClose,
  type CompatServerMessage,
  encodeCompatMessage,
  parsePtyRequest,
} from '@sandwire/internal-api'
import {
  type ClientMessage,
  encode,
  type FromServer,
  isErrorCode,
  limits,
  PROTOCOL_VERSION,
  type Role,
  type ServerMessage,
} from '@sandwire/protocol'
import type { CodecEffect, SessionCodec } from './session-codec.ts'

export interface PtyCodecOptions {
  /** The session's name for the client. */
  readonly name: string
  /** Output before an offset. */
  readonly historyBefore: (end: number) => Uint8Array
}

/** Clears a terminal before a whole screen is drawn. */
const RESET = '\u001bc'

const NORMAL_CLOSE = { code: 1000, reason: '' }

/** Translates between the messages of `/ws/pty` and the frames of a session, without any I/O. */
export class PtyCodec implements SessionCodec {
  readonly #options: PtyCodecOptions
  /** End of every output message. */
  readonly #outputTail: string
  /** Holds back the first bytes of a character until it is complete. */
  #decoder = createDecoder()
  #role: Role = 'viewer'
  #authority: Role = 'viewer'
  /** Input bytes and control messages sent to the session. */
  #sent = { at: 0, seq: 0 }
  #hasEnded = false
  #isStopping = false
  /** How the connection closes, once the session sent a fatal error. */
  #end: CompatClose | undefined

  constructor(options: PtyCodecOptions) {
    this.#options = options
    this.#outputTail = `,"session_id":${JSON.stringify(options.name)}}`
  }

  /** The exit of the process was sent to the client. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** First frame to the session, with the current size, so that joining does not resize the terminal. */
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

  /** A message from the client. `canTake`: the lease is free, or held by another client of this endpoint. */
  fromClient(message: string | Uint8Array, canTake: boolean): readonly CodecEffect[] {
    const request = parsePtyRequest(message)
    switch (request.kind) {
      case 'ping':
        return [toSession({ type: 'ping', id: 0 })]
      case 'invalid':
        return [toClient({ type: 'error', data: request.problem })]
      case 'input':
        return this.#input(request.bytes)
      case 'resize':
        return this.#resize(request, canTake)
    }
  }

  /** A frame from the session. */
  fromSession(frame: FromServer<ServerMessage>, canTake: boolean): readonly CodecEffect[] {
    if (frame.kind === 'data') return this.output(frame.payload)
    const { message } = frame
    switch (message.type) {
      case 'welcome':
        this.#role = message.role
        this.#authority = message.authority
        return this.#greet(message.output)
      case 'role':
        this.#role = message.role
        if (message.role === 'driver') return []
        // Input sent meanwhile was discarded; offsets continue from here.
        this.#sent = { ...message.input }
        return [toSession({ type: 'roleSeen', epoch: message.epoch })]
      case 'presence':
        return message.driver === null && canTake ? this.#take() : []
      case 'snapshot':
        this.#decoder = createDecoder()
        return [this.#output(RESET)]
      case 'exit':
        return this.#exit(message.code)
      case 'error':
        return this.#error(message)
      case 'pong':
        return [toClient({ type: 'pong' })]
      case 'ack':
      case 'gap':
      case 'resized':
      case 'stdinClosed':
      case 'asked':
        return []
    }
  }

  /** Output of the process, or a screen. Incomplete characters are held back. */
  output(bytes: Uint8Array): readonly CodecEffect[] {
    const text = this.#decoder.decode(bytes, { stream: true })
    return text === '' ? [] : [this.#output(text)]
  }

  /** Front ends reconnect after a close, so the exit of a process is not followed by one. */
  closing(): { readonly code: number; readonly reason: string } | undefined {
    if (this.#end !== undefined) return this.#end
    return this.#hasEnded && !this.#isStopping ? undefined : NORMAL_CLOSE
  }

  #greet(end: number): readonly CodecEffect[] {
    const { name, historyBefore } = this.#options
    const history = this.#decoder.decode(historyBefore(end), { stream: true })
    const session = toClient({ type: 'session', session_id: name })
    return history === '' ? [session] : [session, toClient({ type: 'history', data: history })]
  }

  #input(bytes: Uint8Array): readonly CodecEffect[] {
    if (this.#role === 'viewer')
      return [toClient({ type: 'error', data: 'Cannot take input: this connection is read-only' })]
    this.#sent.at += bytes.byteLength
    return [{ do: 'toSession', frame: bytes }]
  }

  /** The last client to resize sets the size; clients that may not drive have no say. */
  #resize({ cols, rows }: { cols: number; rows: number }, canTake: boolean): readonly CodecEffect[] {
    const taking = this.#role === 'driver' ? [] : canTake ? this.#take() : undefined
    if (taking === undefined || this.#authority !== 'driver') return []
    this.#sent.seq += 1
    return [...taking, toSession({ type: 'resize', cols, rows, ...this.#sent })]
  }

  #take(): readonly CodecEffect[] {
    return this.#authority === 'driver' && this.#role !== 'driver' ? [toSession({ type: 'take' })] : []
  }

  #exit(code: number | null): readonly CodecEffect[] {
    const rest = this.#decoder.decode()
    this.#hasEnded = true
    const exit = toClient({ type: 'exit', code, session_id: this.#options.name })
    return rest === '' ? [exit] : [this.#output(rest), exit]
  }

  #error(error: Extract<ServerMessage, { type: 'error' }>): readonly CodecEffect[] {
    const code = isErrorCode(error.code) ? error.code : 'internal'
    const end = compatClose({ code, message: error.message })
    if (error.fatal) this.#end = end
    if (code === 'shutting_down') this.#isStopping = true
    const isOver = this.#hasEnded && this.#isStopping && !error.fatal
    return [toClient(end.last), ...(isOver ? [toSession({ type: 'detach' })] : [])]
  }

  #output(text: string): CodecEffect {
    return { do: 'toClient', text: `{"type":"output","data":${JSON.stringify(text)}${this.#outputTail}` }
  }
}

function createDecoder(): TextDecoder {
  // A byte order mark at the start is output like any other.
  return new TextDecoder('utf-8', { ignoreBOM: true })
}

function toClient(message: CompatServerMessage): CodecEffect {
  return { do: 'toClient', text: encodeCompatMessage(message) }
}

function toSession(message: ClientMessage): CodecEffect {
  return { do: 'toSession', frame: encode(message) }
}
