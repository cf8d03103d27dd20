import type { ErrorCode } from '../errors.ts'
import type { WireMessage } from '../codec.ts'
import type { OutputStream } from '../data-frame.ts'
import type { StopReason } from '../stop-reason.ts'

/** Names one connection. Assigned by the driver of the session and never reused. */
export type ConnectionId = number

/** What a server session asks its driver to do, in order. */
export type ServerEffect =
  /** Start the process. Answered by `ended` or `startFailed` in the end. */
  | {
      readonly do: 'start'
      readonly env: Readonly<Record<string, string>>
      readonly cols: number
      readonly rows: number
    }
  | { readonly do: 'send'; readonly connectionId: ConnectionId; readonly data: WireMessage }
  /** Send output as one data frame. The bytes are a view of the log, which does not change them. */
  | {
      readonly do: 'sendOutput'
      readonly connectionId: ConnectionId
      readonly stream: OutputStream
      readonly bytes: Uint8Array
    }
  /** Close a connection after what was sent. */
  | {
      readonly do: 'close'
      readonly connectionId: ConnectionId
      readonly code: number
      readonly reason: string
    }
  | { readonly do: 'write'; readonly bytes: Uint8Array }
  /** Type into another pane of the same tmux window. */
  | { readonly do: 'writePane'; readonly pane: string; readonly bytes: Uint8Array }
  | { readonly do: 'closeInput' }
  | { readonly do: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly do: 'signal'; readonly signal: string }
  /** Stop, and continue, reading the process's output. */
  | { readonly do: 'pause' }
  | { readonly do: 'resume' }
  /** Render the screen at the end of the log for an attachment. Answered by `snapshotReady`, always. */
  | { readonly do: 'snapshot'; readonly attachment: string }
  /** Make the program redraw its screen. */
  | { readonly do: 'repaint' }
  /** Call `turn` in the next turn of the event loop: the output budget of this turn is used up. */
  | { readonly do: 'again' }
  /** Terminate the process: HUP, TERM, then KILL. */
  | { readonly do: 'terminate' }
  /** The session has ended and may be removed; `wasStarted` is false when it never had a process. */
  | { readonly do: 'gone'; readonly wasStarted: boolean }

/** An error for the peer, sent as it is. */
export interface Refusal {
  readonly code: ErrorCode
  readonly message: string
  /** Why the sandbox stops, with the code `shutting_down`. */
  readonly reason?: StopReason
}
