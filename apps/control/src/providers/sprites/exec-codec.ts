import type { ErrorCode } from '@sandwire/protocol'
import type { ExecEvent } from './exec-connection.ts'

/** What a codec wants done, in order. */
export type ExecEffect =
  | { readonly do: 'toClient'; readonly text: string }
  /** To the other clients of the session. */
  | { readonly do: 'toOthers'; readonly text: string }
  | { readonly do: 'write'; readonly bytes: Uint8Array }
  | { readonly do: 'resize'; readonly cols: number; readonly rows: number }
  /** Closes the client's connection after the exit of the process. */
  | { readonly do: 'close'; readonly code: number; readonly reason: string }
  /** Closes it with `agent_not_configured`, and ends the process, which is of no use. */
  | { readonly do: 'refuse'; readonly message: string }

/** `possible`: the API does not say whether there is any. */
export type ExecReplay = 'none' | 'possible' | 'expected'

export type ExecOutput = Extract<ExecEvent, { kind: 'output' }>

/** Translates between the messages of one client and a process of the exec API, without any I/O. */
export interface ExecCodec {
  /** The process has answered, or need not. */
  readonly isStarted: boolean
  /** Whether output comes next that was written before the client came. */
  readonly replay: ExecReplay
  readonly hasExited: boolean
  /** The first effects. */
  greeting(): readonly ExecEffect[]
  output(output: ExecOutput): readonly ExecEffect[]
  /** No more earlier output comes. */
  replayed(): readonly ExecEffect[]
  /** The API has dropped output. */
  cut(): readonly ExecEffect[]
  exit(code: number): readonly ExecEffect[]
  /** A message of the client. */
  fromClient(message: string | Uint8Array): readonly ExecEffect[]
  /** How an error ends the client's connection. */
  closeOf(error: { readonly code: ErrorCode; readonly message: string }): {
    readonly last: string
    readonly code: number
    readonly reason: string
  }
}
