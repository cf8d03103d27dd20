import type { ClientStatus, Exit, OutputStream, Role, ServerMessage, StopReason } from '@sandwire/protocol'
import type { AttachRequest } from './attach-url.ts'
import type { OpenSocket } from './socket.ts'
import type { Store } from './store.ts'

type Presence = Extract<ServerMessage, { type: 'presence' }>

/** A rendered screen to start from. */
export interface Screen {
  readonly cols: number
  readonly rows: number
  readonly exact: boolean
  readonly bytes: Uint8Array
}

export interface AttachOptions {
  /** Address of the attach route, `http(s):` or `ws(s):`. */
  readonly url: string | URL
  readonly request: AttachRequest
  /** Credentials for each upgrade, asked for anew every time. Headers work outside browsers, protocols everywhere. */
  readonly credentials?: () => Promise<{
    headers?: Readonly<Record<string, string>>
    protocols?: readonly string[]
  }>
  /**
   * Called when credentials were refused, once for each connection; true when it is worth asking `credentials` for others
   * and trying again.
   */
  readonly renewCredentials?: () => Promise<boolean>
  readonly cols?: number
  readonly rows?: number
  /** Environment for a process that this attachment starts. */
  readonly env?: Readonly<Record<string, string>>
  /** Label shown to others in the session. */
  readonly name?: string
  /**
   * Output, in order. The bytes count as consumed when the returned promise resolves, when `done` is called if the
   * function declares it, and else at once. Until then they count against the window and hold the process back.
   */
  readonly onOutput: (stream: OutputStream, bytes: Uint8Array, done: () => void) => void | Promise<void>
  /** A screen to draw instead of what came before; the same rules as for output. */
  readonly onScreen?: (screen: Screen, done: () => void) => void | Promise<void>
  /** Output from..to is lost for this attachment. */
  readonly onGap?: (from: number, to: number) => void
  readonly onResized?: (cols: number, rows: number) => void
  readonly onPresence?: (presence: Presence) => void
  /** Somebody asks this driver to hand over. */
  readonly onAsked?: (by: string) => void
  /**
   * An error that does not end the attachment, such as a line too long for the terminal. With the code `shutting_down`,
   * `stopReason` is why the sandbox stops, when the server said so.
   */
  readonly onWarning?: (code: string, message: string, stopReason: StopReason | undefined) => void
  /** Input that will never be delivered, because the role or the process's stdin is gone. */
  readonly onInputLost?: (bytes: number, why: 'role' | 'stdinClosed') => void
  /** Something of the caller's has thrown: a callback or a listener. The attachment goes on. Default: the console. */
  readonly onCallbackError?: (error: unknown) => void
  /** Most output bytes in flight. */
  readonly windowBytes?: number
  /** How long to try before the first welcome. An attempt that has begun is given 15 s: a sandbox may have to start. */
  readonly connectForMs?: number
  /** How long to try to come back after a cut. */
  readonly retryForMs?: number
  /** How often a silent connection is asked whether it is alive; for tests of dead links. */
  readonly heartbeatMs?: number
  /** Detaches when aborted. */
  readonly signal?: AbortSignal
  readonly openSocket?: OpenSocket
}

/** What a server says about a session when it welcomes an attachment. */
export interface SessionDetails {
  readonly mode: 'pipe' | 'pty'
  /** Seconds the session lives without a connection. */
  readonly keepSeconds: number
  /** Name of this attachment that others see. */
  readonly attachment: string
  /** The most this attachment may become. */
  readonly authority: Role
}

/** A running attachment. */
export interface AttachHandle {
  readonly status: Store<ClientStatus>
  readonly role: Role
  /** Id of the session, once known. */
  readonly session: string | undefined
  /** What the server said about the session, once attached. */
  readonly details: SessionDetails | undefined
  /** Last measured round trip. */
  readonly roundTripMs: Store<number | undefined>
  /** The server has not answered for a while; the connection may yet turn out to be alive. */
  readonly isSilent: Store<boolean>
  /** Resolves when the bytes are accepted for delivery; waits while the process does not take its input. */
  write(bytes: Uint8Array): Promise<void>
  /** Ends the input: closes a pipe, types the end-of-file character on a terminal. */
  eof(): void
  resize(cols: number, rows: number): void
  signal(name: string): void
  take(): void
  ask(): void
  give(to: string): void
  /**
   * To be called when something says that the path may have changed, such as a machine that lost its network or has one again: asks the
   * server at once, and takes the connection for lost when nothing is heard within this time. Who waits to connect does so at once.
   */
  probe(withinMs: number): void
  /** Leaves; the session lives on for its keep. */
  detach(): void
  /** Resolves with the process's exit, after its last byte was consumed; rejects when the attachment fails or is detached. */
  readonly exit: Promise<Exit>
  /** Resolves when the attachment is over and its last connection is closed, so that a goodbye has gone out. */
  readonly closed: Promise<void>
}
