import type {
  ClientStatus,
  Exit,
  OutputStream,
  Role,
  ServerMessage,
  SnapshotPart,
  StopReason,
} from '@sandwire/protocol'
import type { AttachRequest } from './attach-url.ts'
import type { OpenSocket } from './socket.ts'
import type { Store } from './store.ts'

type Presence = Extract<ServerMessage, { type: 'presence' }>

/** A rendered screen to start from. */
export interface Screen {
  readonly cols: number
  readonly rows: number
  readonly exact: boolean
  /** Consecutive parts of the bytes, for drawing in a smaller window. */
  readonly parts?: readonly SnapshotPart[] | undefined
  readonly bytes: Uint8Array
}

export interface AttachOptions {
  /** Address of the attach route, `http(s):` or `ws(s):`. */
  readonly url: string | URL
  readonly request: AttachRequest
  /** Credentials for an upgrade; called for every connection. Headers work outside browsers, protocols everywhere. */
  readonly credentials?: () => Promise<{
    headers?: Readonly<Record<string, string>>
    protocols?: readonly string[]
  }>
  /** Called when credentials were refused, once per connection. True: call `credentials` again and retry. */
  readonly renewCredentials?: () => Promise<boolean>
  readonly cols?: number
  readonly rows?: number
  /** Environment for a process that this attachment starts. */
  readonly env?: Readonly<Record<string, string>>
  /** Label shown to others in the session. */
  readonly name?: string
  /**
   * When output and screens count as consumed; until then they count against the window and slow down the process.
   * `on-return`, the default: when the callback returns, or its promise settles. `manual`: when `done` is called.
   */
  readonly acknowledge?: 'on-return' | 'manual'
  /** Output, in order. `done` is for `acknowledge: 'manual'`. */
  readonly onOutput: (stream: OutputStream, bytes: Uint8Array, done: () => void) => void | Promise<void>
  /** A screen that replaces what was drawn before; consumed like output. */
  readonly onScreen?: (screen: Screen, done: () => void) => void | Promise<void>
  /** Output from..to is no longer available. */
  readonly onGap?: (from: number, to: number) => void
  readonly onResized?: (cols: number, rows: number) => void
  readonly onPresence?: (presence: Presence) => void
  /** Another attachment asks this driver to give the lease. */
  readonly onAsked?: (by: string) => void
  /**
   * An error that does not end the attachment, such as a line too long for the terminal. With the code `shutting_down`,
   * `stopReason` says why the sandbox stops, if the server reported it.
   */
  readonly onWarning?: (code: string, message: string, stopReason: StopReason | undefined) => void
  /** Input that will not be delivered, because the role was lost or the process closed its stdin. */
  readonly onInputLost?: (bytes: number, why: 'role' | 'stdinClosed') => void
  /** A callback or listener of the caller has thrown. The attachment continues. Default: logs to the console. */
  readonly onCallbackError?: (error: unknown) => void
  /** Most output bytes in flight. */
  readonly windowBytes?: number
  /** How long to try before the first welcome. An attempt in progress gets 15 s, because a sandbox may have to start. */
  readonly connectForMs?: number
  /** How long to try to reconnect after a connection was lost. */
  readonly retryForMs?: number
  /** Ping interval of a silent connection; for tests. */
  readonly heartbeatMs?: number
  /** Detaches when aborted. */
  readonly signal?: AbortSignal
  readonly openSocket?: OpenSocket
}

/** What the welcome says about the session. */
export interface SessionDetails {
  readonly mode: 'pipe' | 'pty'
  /** Seconds the session lives without a connection. */
  readonly keepSeconds: number
  /** Public name of this attachment. */
  readonly attachment: string
  /** The highest role this attachment may have. */
  readonly authority: Role
}

/** A running attachment. */
export interface AttachHandle {
  readonly status: Store<ClientStatus>
  readonly role: Role
  /** Id of the session, once known. */
  readonly session: string | undefined
  /** Details of the session, once attached. */
  readonly details: SessionDetails | undefined
  /** Last measured round trip. */
  readonly roundTripMs: Store<number | undefined>
  /** True while the server has not answered for some seconds; the connection may still be alive. */
  readonly isSilent: Store<boolean>
  /** Resolves when the bytes are queued for delivery; waits while the process does not read its input. */
  write(bytes: Uint8Array): Promise<void>
  /** Ends the input: closes a pipe, or sends the end-of-file character to a terminal. */
  eof(): void
  resize(cols: number, rows: number): void
  signal(name: string): void
  take(): void
  ask(): void
  give(to: string): void
  /** Begins or ends private input, which attachments of coding agents neither see nor disturb. */
  setPrivate(isOn: boolean): void
  /**
   * Checks the connection at once, for example after the network changed: if nothing is received within this time, the
   * connection counts as lost. While waiting to reconnect, reconnects at once.
   */
  probe(withinMs: number): void
  /** Detaches. The session continues for its keep time. */
  detach(): void
  /** Resolves with the process's exit after its last byte was consumed; rejects when the attachment fails or is detached. */
  readonly exit: Promise<Exit>
  /** Resolves when the attachment has ended and its last connection is closed. */
  readonly closed: Promise<void>
}
