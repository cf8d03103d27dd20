import {
  COMPAT_HISTORY_BYTES,
  type CompatServerMessage,
  encodeCompatMessage,
  findTextStart,
  parsePtyRequest,
} from '@sandwire/internal-api'
import type { Role } from '@sandwire/protocol'

/** What the codec wants done, in order. */
export type TerminalEffect =
  | { readonly do: 'toClient'; readonly text: string }
  | { readonly do: 'write'; readonly bytes: Uint8Array }
  | { readonly do: 'resize'; readonly cols: number; readonly rows: number }

/** Translates between the messages of `/ws/pty` and a terminal of the exec API, without any I/O. */
export class TerminalCodec {
  readonly #role: Role
  /** The session's name for the client. */
  readonly #name: string
  /** Holds back the first bytes of a character until it is complete. */
  readonly #decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
  #hasExited = false

  constructor(name: string, role: Role) {
    this.#name = name
    this.#role = role
  }

  get hasExited(): boolean {
    return this.#hasExited
  }

  /** The first message to the client. */
  greeting(): TerminalEffect {
    return toClient({ type: 'session', session_id: this.#name })
  }

  /** Output of the time before the client came, as much as it gets. */
  history(bytes: Uint8Array): readonly TerminalEffect[] {
    const last = bytes.subarray(-COMPAT_HISTORY_BYTES)
    const shown = last.length === bytes.length ? last : last.subarray(findTextStart(last))
    const data = this.#decoder.decode(shown, { stream: true })
    return data === '' ? [] : [toClient({ type: 'history', data })]
  }

  output(bytes: Uint8Array): readonly TerminalEffect[] {
    return this.#toOutput(this.#decoder.decode(bytes, { stream: true }))
  }

  /** The API reports a signal as 128 and its number, as shells do. */
  exit(code: number): readonly TerminalEffect[] {
    this.#hasExited = true
    const rest = this.#toOutput(this.#decoder.decode())
    return [...rest, toClient({ type: 'exit', code, session_id: this.#name })]
  }

  /** A message of the client. After the exit, only pings are answered. */
  fromClient(message: string | Uint8Array): readonly TerminalEffect[] {
    const request = parsePtyRequest(message)
    switch (request.kind) {
      case 'ping':
        return [toClient({ type: 'pong' })]
      case 'invalid':
        return [toClient({ type: 'error', data: request.problem })]
      case 'input':
        if (this.#role === 'viewer')
          return [toClient({ type: 'error', data: 'Cannot take input: this connection is read-only' })]
        return this.#hasExited ? [] : [{ do: 'write', bytes: request.bytes }]
      case 'resize':
        if (this.#hasExited || this.#role !== 'driver') return []
        return [{ do: 'resize', cols: request.cols, rows: request.rows }]
    }
  }

  #toOutput(data: string): readonly TerminalEffect[] {
    return data === '' ? [] : [toClient({ type: 'output', data, session_id: this.#name })]
  }
}

function toClient(message: CompatServerMessage): TerminalEffect {
  return { do: 'toClient', text: encodeCompatMessage(message) }
}
