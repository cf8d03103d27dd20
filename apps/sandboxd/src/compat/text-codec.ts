import { formatNotice } from '@sandwire/internal-api'
import {
  type ClientMessage,
  encode,
  ERRORS,
  type FromServer,
  isErrorCode,
  limits,
  PROTOCOL_VERSION,
  type Role,
  type ServerMessage,
  signalNumber,
} from '@sandwire/protocol'
import type { CodecEffect, SessionCodec, TerminalSize } from './session-codec.ts'

/** Clears a terminal before a whole screen is drawn. */
const RESET = '\u001bc'
/** What a terminal does with input that it does not take. */
const BELL = '\u0007'
const NORMAL_CLOSE = 1000

/**
 * Translates between a terminal that draws each text message it receives and sends what is typed as text, and the frames of a
 * session.
 */
export class TextCodec implements SessionCodec {
  /** The size that the client stated, if any. */
  readonly #size: TerminalSize | undefined
  /** Holds back the first bytes of a character until it is complete. */
  #decoder = createDecoder()
  #role: Role = 'viewer'
  #end: { readonly code: number; readonly reason: string } = { code: NORMAL_CLOSE, reason: '' }

  constructor(size?: TerminalSize) {
    this.#size = size
  }

  hello(identity: string, size: TerminalSize): string {
    const { cols, rows } = this.#size ?? size
    return encode({
      type: 'hello',
      version: PROTOCOL_VERSION,
      identity,
      resuming: false,
      received: 0,
      window: limits.MAX_WINDOW_BYTES,
      cols,
      rows,
    })
  }

  fromClient(message: string | Uint8Array): readonly CodecEffect[] {
    const bytes = typeof message === 'string' ? new TextEncoder().encode(message) : message
    if (bytes.byteLength === 0) return []
    if (this.#role === 'viewer') return [toClient(BELL)]
    return [{ do: 'toSession', frame: bytes }]
  }

  fromSession(frame: FromServer<ServerMessage>): readonly CodecEffect[] {
    if (frame.kind === 'data') return this.output(frame.payload)
    const { message } = frame
    switch (message.type) {
      case 'welcome':
        this.#role = message.role
        return []
      case 'role':
        this.#role = message.role
        return message.role === 'driver' ? [] : [toSession({ type: 'roleSeen', epoch: message.epoch })]
      case 'snapshot':
        this.#decoder = createDecoder()
        return [toClient(RESET)]
      case 'exit':
        return this.#exit(message)
      case 'error':
        return this.#error(message)
      case 'pong':
      case 'presence':
      case 'ack':
      case 'gap':
      case 'resized':
      case 'stdinClosed':
      case 'asked':
        return []
    }
  }

  output(bytes: Uint8Array): readonly CodecEffect[] {
    const text = this.#decoder.decode(bytes, { stream: true })
    return text === '' ? [] : [toClient(text)]
  }

  closing(): { readonly code: number; readonly reason: string } {
    return this.#end
  }

  /** The reason of the close has the status, because every message is drawn. */
  #exit({ code, signal }: Extract<ServerMessage, { type: 'exit' }>): readonly CodecEffect[] {
    const status = code ?? 128 + (signalNumber(signal ?? '') ?? 0)
    this.#end = { code: NORMAL_CLOSE, reason: `exit ${status}` }
    const rest = this.#decoder.decode()
    return rest === '' ? [] : [toClient(rest)]
  }

  #error({ code, message, fatal }: Extract<ServerMessage, { type: 'error' }>): readonly CodecEffect[] {
    if (fatal) this.#end = { code: ERRORS[isErrorCode(code) ? code : 'internal'].close, reason: code }
    return [toClient(formatNotice(message))]
  }
}

function createDecoder(): TextDecoder {
  // A byte order mark at the start is output like any other.
  return new TextDecoder('utf-8', { ignoreBOM: true })
}

function toClient(text: string): CodecEffect {
  return { do: 'toClient', text }
}

function toSession(message: ClientMessage): CodecEffect {
  return { do: 'toSession', frame: encode(message) }
}
