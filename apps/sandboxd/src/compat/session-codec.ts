import type { FromServer, ServerMessage, WireMessage } from '@sandwire/protocol'

/** What a codec wants done, in order. */
export type CodecEffect =
  | { readonly do: 'toClient'; readonly text: string }
  /** A `sandwire.v1` frame. */
  | { readonly do: 'toSession'; readonly frame: WireMessage }

export interface TerminalSize {
  readonly cols: number
  readonly rows: number
}

/** Translates between the messages of one compat client and the frames of its session, without any I/O. */
export interface SessionCodec {
  /** First frame to the session. `size` is the terminal's now. */
  hello(identity: string, size: TerminalSize): string
  /** A message from the client. `canTake`: the client may take the lease. */
  fromClient(message: string | Uint8Array, canTake: boolean): readonly CodecEffect[]
  /** A frame from the session. */
  fromSession(frame: FromServer<ServerMessage>, canTake: boolean): readonly CodecEffect[]
  /** Output of the process. */
  output(bytes: Uint8Array): readonly CodecEffect[]
  /** How the client's connection is closed when the session closes its own; undefined: it stays open. */
  closing(): { readonly code: number; readonly reason: string } | undefined
}
