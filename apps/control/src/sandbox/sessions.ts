import { SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { limitTimeouts, type SessionTimeouts } from '../session-settings.ts'
import { readBoundedBytes } from '../http/read-bounded.ts'
import type { ProviderSessions } from '../providers/provider.ts'
import { type Access, type Need, NEEDS } from './access.ts'
import type { AttachCall, SandboxCall } from './call.ts'
import type { Running, SandboxLifecycle } from './lifecycle.ts'
import type { OutputBudget } from './output-budget.ts'
import {
  type Caller,
  controlItself,
  invalidResponse,
  type SandboxdClient,
  startingTemplate,
} from './sandboxd-client.ts'
import { decodeOneSession, type SessionFacts, withPin } from './session-view.ts'
import type { SandboxStore } from './store.ts'

/** Most output that sandboxd returns at once. */
const MAX_OUTPUT_BYTES = 1024 * 1024
/** Most continuation bytes of a UTF-8 character. */
const MAX_UTF8_TAIL = 3
/** How long a connection may be open before it must authenticate again, if its credential does not expire sooner. */
export const REAUTHORIZE_MS = 15 * 60 * 1000
/** How long it may be open at least: a credential that is about to expire must not make clients reconnect over and over. */
const MIN_AUTHORIZED_MS = 60 * 1000

/** Body of `POST /sessions` at sandboxd. */
export interface ProcessRequest {
  readonly createId: string
  readonly cmd?: string
  readonly args?: readonly string[]
  readonly mode?: 'pipe' | 'pty'
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly cols?: number
  readonly rows?: number
  readonly keep?: number
  /** Seconds until the session is ended; the operator's limits apply in any case. */
  readonly lifetime?: number
  readonly idle?: number
  readonly overflow?: 'block' | 'trim'
}

/** Options of a start that are not part of the body. */
export interface StartOptions {
  /** The sandbox does not stop for being idle while the session runs. */
  readonly pinned?: boolean
  /** Environment that the template gives its process. */
  readonly env?: Readonly<Record<string, string>>
}

/** Part of a session's output. */
export interface OutputPart {
  readonly bytes: ArrayBuffer
  /** Offsets of the first byte, of the next byte to request, and of the end so far. */
  readonly from: number
  readonly next: number
  readonly end: number
}

export interface ExecResult {
  readonly session: string
  readonly exit: { readonly code: number | null; readonly signal: string | null }
  /** Both streams in the order they were written. */
  readonly output: string
  /** Earlier output is missing. */
  readonly isCut: boolean
}

export interface SessionsDependencies {
  readonly lifecycle: SandboxLifecycle
  readonly store: SandboxStore
  /** Sessions that the provider runs. */
  readonly execSessions?: ProviderSessions | undefined
  readonly sandboxd: (sandbox: string) => SandboxdClient
  /** Limits the output sent to each account. */
  readonly budget: OutputBudget
  /** The operator's limits. */
  readonly timeouts: SessionTimeouts
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
}

const offset = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER)

function readOffsets(headers: Headers): Pick<OutputPart, 'from' | 'next' | 'end'> {
  const read = (name: string): number => {
    const value = offset.safeParse(headers.get(`sandwire-${name}`) ?? undefined)
    if (!value.success) throw invalidResponse()
    return value.data
  }
  return { from: read('from'), next: read('next'), end: read('end') }
}

/** Decodes UTF-8; drops a partial character at the start of truncated output. */
function decodeTail(bytes: Uint8Array, isTruncated: boolean): string {
  const isContinuation = (byte: number | undefined): boolean => byte !== undefined && byte >> 6 === 0b10
  let at = 0
  while (isTruncated && at < MAX_UTF8_TAIL && isContinuation(bytes[at])) at += 1
  return new TextDecoder().decode(bytes.subarray(at))
}

interface ReachOptions {
  readonly need: Need
  /** Session that the call names. */
  readonly session?: string
  readonly mayStart: boolean
  readonly isIdempotent: boolean
}

/**
 * When sandboxd closes a connection so that its client authenticates again; undefined: never, because its credential does not
 * expire or because it is a compat connection, which control only rechecks. A plain connection cannot resume, so it lasts as long
 * as its credential, and control rechecks it.
 */
export function reauthorizeAt(
  { expiresMs, dialect, compat }: Pick<AttachCall, 'expiresMs' | 'dialect' | 'compat'>,
  nowMs: number,
): number | undefined {
  if (expiresMs === undefined || compat !== undefined) return undefined
  if (dialect === 'plain') return expiresMs
  return Math.min(Math.max(expiresMs, nowMs + MIN_AUTHORIZED_MS), nowMs + REAUTHORIZE_MS)
}

/** The caller as sandboxd sees it. */
function callerOf(call: SandboxCall | AttachCall, { need, authority, grant }: Access, nowMs: number): Caller {
  const reauthorizeMs = 'dialect' in call ? reauthorizeAt(call, nowMs) : undefined
  const { identity, name, scopes, login, requestId } = call
  return {
    identity,
    name,
    authority,
    requestId,
    exec: scopes.includes('exec') && NEEDS.indexOf(need) >= NEEDS.indexOf('work'),
    ...(login === undefined ? {} : { login }),
    ...(grant === undefined ? {} : { grant }),
    ...(reauthorizeMs === undefined ? {} : { reauthorizeMs }),
  }
}

/** Sessions of one sandbox, through its sandboxd. */
export class SandboxSessions {
  readonly #deps: SessionsDependencies

  constructor(deps: SessionsDependencies) {
    this.#deps = deps
  }

  /**
   * Runs against the sandbox's sandboxd. When that is unreachable, the provider's state is read once. The call is repeated when
   * the sandbox was restarted, since nothing of the first attempt is left, or when it is idempotent.
   */
  async reach<T>(
    call: SandboxCall,
    options: ReachOptions,
    run: (running: Running, sandboxd: SandboxdClient, caller: Caller) => Promise<T>,
  ): Promise<T> {
    const { lifecycle, sandboxd } = this.#deps
    const authorize = () => lifecycle.authorize(call, options.need, options.session)
    const client = sandboxd(authorize().record.id)
    const attempt = async (): Promise<T> => {
      const running = await this.#compatible(call, options.mayStart, client)
      // Again: access may have been revoked during the start.
      return run(running, client, callerOf(call, authorize().access, this.#deps.nowMs()))
    }
    const before = await lifecycle.ready(call.requestId, options.mayStart)
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof SandwireError) || error.code !== 'sandbox_unreachable') throw error
      const now = await lifecycle.observe(call.requestId)
      const isSame = now.kind === 'running' && now.epoch === before.epoch && now.address === before.address
      if (isSame && !options.isIdempotent) throw error
      return attempt()
    }
  }

  /** Starts a process without attaching to it. */
  startProcess(
    call: SandboxCall,
    session: string,
    request: ProcessRequest,
    start: StartOptions = {},
  ): Promise<SessionFacts> {
    const { lifecycle, store, nowMs } = this.#deps
    const entry = { need: 'work', mayStart: true, isIdempotent: true } as const
    return this.reach(call, entry, async (running, sandboxd, caller) => {
      await lifecycle.admitSession(session)
      store.touch(nowMs())
      const body = { ...request, ...limitTimeouts(request, this.#deps.timeouts) }
      const post = { method: 'POST', path: '/sessions', session, body } as const
      const facts = this.#decode(
        await sandboxd.request(running.address, startingTemplate(caller, { ...start, ...call }), post),
      )
      if (start.pinned === true) store.setPin(facts.id, true)
      return withPin(facts, store.pins())
    })
  }

  /** Sets whether a session keeps the sandbox from stopping when idle. */
  async pin(call: SandboxCall, session: string, pinned: boolean): Promise<void> {
    const { lifecycle, store } = this.#deps
    lifecycle.authorize(call, 'work', session)
    const { id } = await this.show(call, session)
    store.setPin(id, pinned)
  }

  async showPinned(call: SandboxCall, session: string): Promise<SessionFacts> {
    return withPin(await this.show(call, session), this.#deps.store.pins())
  }

  async show(call: SandboxCall, session: string): Promise<SessionFacts> {
    const found = this.#ofProvider(call, 'watch', session)
    if (found !== undefined) return found
    return this.#existing(call, { need: 'watch', session }, async (running, sandboxd, caller) =>
      this.#decode(
        await sandboxd.request(running.address, caller, { method: 'GET', path: `/sessions/${session}` }),
      ),
    )
  }

  async end(call: SandboxCall, session: string): Promise<SessionFacts> {
    const found = this.#ofProvider(call, 'work', session)
    if (found !== undefined) {
      await this.#deps.execSessions?.end(session)
      return { ...found, state: 'gone' }
    }
    return this.#existing(call, { need: 'work', session }, async (running, sandboxd, caller) =>
      this.#decode(
        await sandboxd.request(running.address, caller, { method: 'DELETE', path: `/sessions/${session}` }),
      ),
    )
  }

  /** Output from an offset on, as much as exists and the caller's budget allows. */
  async output(call: SandboxCall, session: string, from: number): Promise<OutputPart> {
    const { budget, nowMs } = this.#deps
    // Before the budget, so that a caller without access learns nothing about it.
    this.#deps.lifecycle.authorize(call, 'watch', session)
    budget.check(call.identity, nowMs())
    const part = await this.#read(call, session, from)
    const { byteLength } = part.bytes
    const sentBytes = budget.take(call.identity, byteLength, nowMs())
    if (sentBytes === byteLength) return part
    // Concurrent requests used up the budget.
    if (sentBytes === 0) budget.check(call.identity, nowMs())
    return { ...part, bytes: part.bytes.slice(0, sentBytes), next: part.from + sentBytes }
  }

  #read(call: SandboxCall, session: string, from: number): Promise<OutputPart> {
    return this.#existing(call, { need: 'watch', session }, (running, sandboxd, caller) =>
      sandboxd.read(running.address, caller, {
        method: 'GET',
        path: `/sessions/${session}/output?from=${from}`,
        read: async (response, signal) => {
          const bytes = await readBoundedBytes(response, MAX_OUTPUT_BYTES, signal)
          return bytes === undefined ? undefined : { bytes, ...readOffsets(response.headers) }
        },
      }),
    )
  }

  /**
   * Starts a process, waits for its exit and returns the end of its output. Its output log is trimmed instead of blocking,
   * because nothing reads it while it runs. `onStart` is awaited once it runs.
   */
  async exec(
    call: SandboxCall,
    session: string,
    request: ProcessRequest,
    timeoutMs: number,
    onStart: () => Promise<void>,
  ): Promise<ExecResult> {
    const { lifecycle, budget, nowMs, sleep } = this.#deps
    lifecycle.authorize(call, 'work')
    budget.check(call.identity, nowMs())
    const started = await this.startProcess(call, session, { ...request, overflow: 'trim' })
    const { id } = started
    await onStart()
    const { exit, output: stored } = await waitForExit(started, timeoutMs, {
      nowMs,
      sleep,
      show: () => this.show(call, id),
      end: () => this.#endAsControl(call.requestId, id),
    })
    const { bytes, from, next, end } = await this.#read(call, id, Math.max(0, stored.end - MAX_OUTPUT_BYTES))
    const skipped = bytes.byteLength - budget.take(call.identity, bytes.byteLength, nowMs())
    const isTruncated = from + skipped > 0 || next < end
    const output = decodeTail(new Uint8Array(bytes, skipped), from + skipped > 0)
    return { session: id, exit: { code: exit.code, signal: exit.signal }, output, isCut: isTruncated }
  }

  /** Ends a session on behalf of control. */
  async #endAsControl(requestId: string, session: string): Promise<void> {
    const { lifecycle, sandboxd } = this.#deps
    const { address } = await lifecycle.ready(requestId, false)
    const path = `/sessions/${session}`
    await sandboxd(lifecycle.id).request(address, controlItself(requestId), { method: 'DELETE', path })
  }

  /** A session that the provider runs. */
  #ofProvider(call: SandboxCall, need: Need, session: string): SessionFacts | undefined {
    const { lifecycle, execSessions } = this.#deps
    const found = execSessions?.list().find(({ id }) => id === session)
    if (found !== undefined) lifecycle.authorize(call, need, session)
    return found
  }

  /** A request for an existing session never starts the sandbox. */
  #existing<T>(
    call: SandboxCall,
    entry: Pick<ReachOptions, 'need' | 'session'>,
    run: (running: Running, sandboxd: SandboxdClient, caller: Caller) => Promise<T>,
  ): Promise<T> {
    return this.reach(call, { ...entry, mayStart: false, isIdempotent: true }, run)
  }

  #decode(value: unknown): SessionFacts {
    const { lifecycle, nowMs } = this.#deps
    const session = decodeOneSession(value, lifecycle.id, nowMs())
    if (session === undefined) throw invalidResponse()
    return session
  }

  /** The running sandbox with a compatible sandboxd; its version is read once per start. */
  async #compatible(call: SandboxCall, mayStart: boolean, sandboxd: SandboxdClient): Promise<Running> {
    const { lifecycle } = this.#deps
    const running = await lifecycle.ready(call.requestId, mayStart)
    if (running.protocol !== undefined) return running
    const protocol = await sandboxd.readVersion(running.address, call.requestId)
    await lifecycle.apply({ type: 'version_known', epoch: running.epoch, protocol })
    return { ...running, protocol }
  }
}

/** Interval of polls for the exit of a process; it doubles up to the maximum. */
const MIN_POLL_MS = 20
const MAX_POLL_MS = 500

interface ExitPolling {
  /** Reads the session; throws when the caller lost its access. */
  readonly show: () => Promise<SessionFacts>
  /** Ends the session, also for a caller that lost its access. */
  readonly end: () => Promise<unknown>
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** Waits for a process to exit. One that takes too long, or whose caller lost its access, is ended. */
async function waitForExit(
  started: SessionFacts,
  timeoutMs: number,
  { show, end, nowMs, sleep }: ExitPolling,
): Promise<SessionFacts & { readonly exit: NonNullable<SessionFacts['exit']> }> {
  const deadlineMs = nowMs() + timeoutMs
  try {
    let facts = started
    for (let waitMs = MIN_POLL_MS; facts.exit === null && nowMs() < deadlineMs; waitMs *= 2) {
      await sleep(Math.min(waitMs, MAX_POLL_MS))
      facts = await show()
    }
    const { exit } = facts
    if (exit === null) throw new SandwireError('timed_out', 'The process did not exit in time')
    return { ...facts, exit }
  } catch (error) {
    // The first error matters more than one while ending the process, for example because the sandbox stopped.
    await end().catch(() => undefined)
    throw error
  }
}
