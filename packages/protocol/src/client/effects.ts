import type { Role } from '../client-frames.ts'
import type { WireMessage } from '../codec.ts'
import type { OutputStream } from '../data-frame.ts'
import type { SandwireError } from '../errors.ts'
import type { Exit, ServerMessage, SnapshotPart } from '../server-frames.ts'
import type { StopReason } from '../stop-reason.ts'

/** Number of a connection attempt; events of older attempts are ignored. */
export type AttemptId = number

export type ClientStatus =
  | { readonly kind: 'connecting'; readonly attempt: number }
  | { readonly kind: 'attached'; readonly session: string; readonly role: Role }
  | { readonly kind: 'reconnecting'; readonly attempt: number; readonly atMs: number; readonly why: string }
  | { readonly kind: 'exited'; readonly exit: Exit }
  | { readonly kind: 'detached' }
  | { readonly kind: 'failed'; readonly error: SandwireError }

type Presence = Extract<ServerMessage, { type: 'presence' }>

/** What the driver of a client session must do, in order. */
export type ClientEffect =
  /** Open a connection: to the session when one is known, otherwise to create it. */
  | { readonly do: 'connect'; readonly attempt: AttemptId; readonly session: string | undefined }
  | { readonly do: 'send'; readonly attempt: AttemptId; readonly data: WireMessage }
  /** Close the connection and ignore its later events. */
  | { readonly do: 'close'; readonly attempt: AttemptId }
  /** Bytes for the consumer, to be followed by `consumed`. */
  | { readonly do: 'output'; readonly stream: OutputStream; readonly bytes: Uint8Array; readonly end: number }
  | { readonly do: 'gap'; readonly from: number; readonly to: number }
  /** A screen that replaces everything before; followed by `consumed` like output. */
  | {
      readonly do: 'snapshot'
      readonly at: number
      readonly cols: number
      readonly rows: number
      readonly exact: boolean
      readonly parts: readonly SnapshotPart[] | undefined
      readonly bytes: Uint8Array
    }
  | { readonly do: 'resized'; readonly cols: number; readonly rows: number }
  /** Room for more input. */
  | { readonly do: 'writable' }
  /** `bytes` of input will never be delivered. */
  | { readonly do: 'inputLost'; readonly bytes: number; readonly why: 'role' | 'stdinClosed' }
  | { readonly do: 'presence'; readonly presence: Presence }
  | { readonly do: 'asked'; readonly by: string }
  /** An error that does not end the connection. */
  | {
      readonly do: 'warning'
      readonly code: string
      readonly message: string
      /** Why the sandbox stops, with the code `shutting_down`. */
      readonly stopReason: StopReason | undefined
    }
  | { readonly do: 'roundTrip'; readonly ms: number }
  /** The server has stopped answering, or answers again. */
  | { readonly do: 'silence'; readonly isSilent: boolean }
  | { readonly do: 'status'; readonly status: ClientStatus }
