import {
  COMPAT_HISTORY_BYTES,
  compatClose,
  type CompatServerMessage,
  encodeCompatMessage,
  findTextStart,
  parsePtyRequest,
} from '@sandwire/internal-api'
import type { Role } from '@sandwire/protocol'
import type { ExecCodec, ExecEffect, ExecOutput, ExecReplay } from './exec-codec.ts'

/** Translates between the messages of `/ws/pty` and a terminal of the exec API, without any I/O. */
export class TerminalCodec implements ExecCodec {
  readonly isStarted = true
  readonly #role: Role
  /** The session's name for the client. */
  readonly #name: string
  /** Holds back the first bytes of a character until it is complete. */
  readonly #decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
  #replay: ExecReplay
  #hasExited = false

  constructor(name: string, role: Role, replay: ExecReplay) {
    this.#name = name
    this.#role = role
    this.#replay = replay
  }

  get replay(): ExecReplay {
    return this.#replay
  }

  get hasExited(): boolean {
    return this.#hasExited
  }

  greeting(): readonly ExecEffect[] {
    return [toClient({ type: 'session', session_id: this.#name })]
  }

  output({ bytes }: Pick<ExecOutput, 'bytes'>): readonly ExecEffect[] {
    if (this.#replay !== 'none') return this.#history(bytes)
    return this.#toOutput(this.#decoder.decode(bytes, { stream: true }))
  }

  replayed(): readonly ExecEffect[] {
    this.#replay = 'none'
    return []
  }

  /** Output of terminals is a screen, which programs draw again. */
  cut(): readonly ExecEffect[] {
    return []
  }

  closeOf(error: Parameters<ExecCodec['closeOf']>[0]): ReturnType<ExecCodec['closeOf']> {
    const { last, ...close } = compatClose(error)
    return { last: encodeCompatMessage(last), ...close }
  }

  /** The API reports a signal as 128 and its number, as shells do. */
  exit(code: number): readonly ExecEffect[] {
    this.#hasExited = true
    const rest = this.#toOutput(this.#decoder.decode())
    return [...rest, toClient({ type: 'exit', code, session_id: this.#name })]
  }

  /** After the exit, only pings are answered. */
  fromClient(message: string | Uint8Array): readonly ExecEffect[] {
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

  /** The API sends all that it keeps in one message; of that, as much as a client gets. */
  #history(bytes: Uint8Array): readonly ExecEffect[] {
    this.#replay = 'none'
    const last = bytes.subarray(-COMPAT_HISTORY_BYTES)
    const shown = last.length === bytes.length ? last : last.subarray(findTextStart(last))
    const data = this.#decoder.decode(shown, { stream: true })
    return data === '' ? [] : [toClient({ type: 'history', data })]
  }

  #toOutput(data: string): readonly ExecEffect[] {
    return data === '' ? [] : [toClient({ type: 'output', data, session_id: this.#name })]
  }
}

function toClient(message: CompatServerMessage): ExecEffect {
  return { do: 'toClient', text: encodeCompatMessage(message) }
}
