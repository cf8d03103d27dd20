import type { ClaudeStreamOptions } from '@sandwire/agent'
import type { HostHealth, SandboxStatus, StartSpec } from '@sandwire/internal-api'
import type { Role, StopReason } from '@sandwire/protocol'
import type { Selector } from '../sandbox/revocation.ts'
import type { SessionFacts } from '../sandbox/session-view.ts'
import type { ListedVersion } from '../versions/version-store.ts'

/** What remains after an event. */
export type Survivor = 'processes' | 'files' | 'nothing'

export interface Survival {
  /** The last client disconnects. */
  readonly detach: Survivor
  /** The sandbox stops. */
  readonly stop: Survivor
  /** Control is replaced by another version. */
  readonly upgrade: Survivor
}

/** A request to the sandboxd of a running sandbox. */
export interface UpstreamRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'
  /** Path and query, as the token in the headers was signed for. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer> | ReadableStream
  /** Aborts the request and its response with its reason. A caller that passes one also limits the time until the response. */
  readonly signal?: AbortSignal
  /** True when the response waits for an event; measured apart from other requests. */
  readonly isPoll?: boolean
}

/** Checkpoints that a provider makes itself; used where control does not save files. */
export interface ProviderCheckpoints {
  /** Newest first. */
  list(id: string): Promise<readonly ListedVersion[]>
  /** Returns the new one. */
  create(id: string, name: string | undefined): Promise<ListedVersion>
  /** Throws `not_found`. */
  find(id: string, nameOrNumber: string): Promise<ListedVersion>
  /** Replaces the files of a stopped sandbox. */
  restore(id: string, number: number): Promise<void>
}

/** Kinds of sessions that a provider runs itself: terminals of `/ws/pty`, and Claude Code for `/ws/claude-stream`. */
export type SessionKind = 'pty' | 'claude'

/** A session to start. Its command is the server's: the shell, a template, or Claude Code with these options. */
export interface SessionStart {
  /** Command template of a terminal; absent: the shell. */
  readonly template?: string
  readonly cmd?: string
  readonly args: readonly string[]
  readonly claude?: ClaudeStreamOptions
  /** Folder below the workspace. */
  readonly cwd?: string
  readonly env: Readonly<Record<string, string>>
  /** How long it outlives its last client. */
  readonly keepSeconds: number
  /** 0: no limit. */
  readonly lifetimeSeconds: number
  readonly idleSeconds: number
}

/** An authorized client of `/ws/pty` or `/ws/claude-stream`. */
export interface SessionRequest {
  readonly session: string
  /** A session of another kind does not exist for it. */
  readonly kind: SessionKind
  /** Absent: the session exists. */
  readonly start?: SessionStart
  /** The session's name for the client. */
  readonly name: string
  readonly userName: string
  readonly authorization: { readonly identity: string; readonly login?: string; readonly grant?: string }
  readonly authority: Role
  /** The role in a terminal that a template started, where that is more. */
  readonly templateRole?: Role
  readonly heartbeatSeconds: number
  readonly requestId: string
}

/** Sessions that a provider runs itself; used for the compat API instead of those of sandboxd. */
export interface ProviderSessions {
  has(session: string): boolean
  /** Starts or joins a session; returns the response that opens the client's WebSocket. Throws `session_not_found`. */
  open(request: SessionRequest): Promise<Response>
  list(): readonly SessionFacts[]
  /** Ends its process. Ending nothing is not an error. */
  end(session: string): Promise<void>
  /** Closes the connections that match every given field. */
  disconnect(selector: Selector): void
  /** Ends sessions whose time is over. */
  collect(): Promise<void>
  /** When `collect` must be called; undefined: never. */
  nextMs(): number | undefined
}

/**
 * Starts, stops and reaches sandboxes. Every method may be called at any time and concurrently. They throw
 * `provider_unavailable` when there is no response, and `sandbox_failed` when the operation failed.
 */
export interface Provider {
  readonly survives: Survival
  /** `stop` passes its reason on to sandboxd. */
  readonly deliversStopReason: boolean
  readonly checkpoints?: ProviderCheckpoints
  readonly execSessions?: ProviderSessions
  /** Starts the sandbox unless it runs; concurrent calls share one start. */
  start(spec: StartSpec, requestId: string): Promise<SandboxStatus>
  status(id: string, requestId: string): Promise<SandboxStatus>
  /** Ends its processes; the reason is reported by `status`. Stopping a stopped sandbox is not an error. */
  stop(id: string, requestId: string, reason?: StopReason): Promise<SandboxStatus>
  /** Deletes the sandbox and its files. Deleting nothing is not an error. */
  destroy(id: string, requestId: string): Promise<void>
  /** Closes every connection into the sandbox without sandboxd; clients resume. */
  disconnectAll(id: string, requestId: string): Promise<void>
  /** Keeps the sandbox running for this long; for providers whose sandboxes end by themselves. */
  renew(id: string, forMs: number, requestId: string): Promise<void>
  /** The end of its log, JSON lines. */
  logs(id: string, maxBytes: number, requestId: string): Promise<string>
  health(requestId: string): Promise<HostHealth>
  /** Sends a request to sandboxd. Redirects are not followed; throws `sandbox_unreachable` without a response. */
  fetch(address: string, request: UpstreamRequest): Promise<Response>
}
