import type { HostHealth, SandboxStatus, StartSpec } from '@sandwire/internal-api'
import type { StopReason } from '@sandwire/protocol'

/** What is still there after an event in the life of a sandbox. */
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
  readonly body?: string | ReadableStream
  /** Ends the request and its answer, and throws its reason. Whoever gives one bounds the time until the answer begins. */
  readonly signal?: AbortSignal
}

/**
 * What makes and reaches sandboxes. Every method may be called at any time, by several at once. They throw
 * `provider_unavailable` when the maker does not answer, `sandbox_failed` when it could not do it.
 */
export interface Provider {
  readonly survives: Survival
  /** `stop` passes its reason on to sandboxd. */
  readonly deliversStopReason: boolean
  /** Starts the sandbox unless it runs, once for all who ask. */
  start(spec: StartSpec, requestId: string): Promise<SandboxStatus>
  status(id: string, requestId: string): Promise<SandboxStatus>
  /** Ends its processes, and says why where that is kept. Stopping what does not run is no error. */
  stop(id: string, requestId: string, reason?: StopReason): Promise<SandboxStatus>
  /** Removes everything of it. Nothing to remove is no error. */
  destroy(id: string, requestId: string): Promise<void>
  /** Cuts every connection into it; clients resume. */
  sever(id: string, requestId: string): Promise<void>
  /** It is wanted for this long even if nobody asks for anything; where sandboxes end by themselves. */
  renew(id: string, forMs: number, requestId: string): Promise<void>
  /** The last bytes of its log, JSON lines. */
  logs(id: string, maxBytes: number, requestId: string): Promise<string>
  health(requestId: string): Promise<HostHealth>
  /** Asks sandboxd. Redirects are not followed; throws `sandbox_unreachable` when there is no answer. */
  fetch(address: string, request: UpstreamRequest): Promise<Response>
}
