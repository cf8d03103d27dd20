import { SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { readBoundedBytes } from '../http/read-bounded.ts'
import { type Access, type Need, NEEDS } from './access.ts'
import type { AttachCall, SandboxCall } from './call.ts'
import type { SandboxLife, Running } from './life.ts'
import type { OutputBudget } from './output-budget.ts'
import {
  type Caller,
  controlItself,
  notUnderstood,
  type SandboxdClient,
  startingTemplate,
} from './sandboxd-client.ts'
import { decodeOneSession, type SessionFacts, withPin } from './session-view.ts'
import type { SandboxStore } from './store.ts'
import { waitForExit } from './wait-for-exit.ts'

/** Most output that sandboxd returns at once. */
const MAX_OUTPUT_BYTES = 1024 * 1024
/** Bytes of a character in UTF-8 after its first, at most. */
const MAX_UTF8_TAIL = 3
/** How long a connection may stay before its right to is asked for again. */
export const REAUTHORIZE_MS = 15 * 60 * 1000

/** A process to start, as `POST /sessions` of sandboxd takes it. */
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
  readonly overflow?: 'block' | 'trim'
}

/** What control knows of a start and sandboxd's body does not say. */
export interface StartOptions {
  /** The sandbox does not sleep while it runs. */
  readonly pinned?: boolean
  /** Environment that the template gives its process. */
  readonly env?: Readonly<Record<string, string>>
}

/** Part of a session's output. */
export interface OutputPart {
  readonly bytes: ArrayBuffer
  /** Offsets of the first byte here, of the next one to ask for, and of the end so far. */
  readonly from: number
  readonly next: number
  readonly end: number
}

export interface ExecResult {
  readonly session: string
  readonly exit: { readonly code: number | null; readonly signal: string | null }
  /** Both streams in the order they were written. */
  readonly output: string
  /** There was more before it. */
  readonly isCut: boolean
}

export interface SessionsDependencies {
  readonly life: SandboxLife
  readonly store: SandboxStore
  readonly sandboxd: (sandbox: string) => SandboxdClient
  /** How much output each person may be sent. */
  readonly budget: OutputBudget
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
}

const offset = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER)

function readOffsets(headers: Headers): Pick<OutputPart, 'from' | 'next' | 'end'> {
  const read = (name: string): number => {
    const value = offset.safeParse(headers.get(`sandwire-${name}`) ?? undefined)
    if (!value.success) throw notUnderstood()
    return value.data
  }
  return { from: read('from'), next: read('next'), end: read('end') }
}

/** Text of bytes that may begin in the middle of a character; what is left of that one is dropped. */
function decodeTail(bytes: Uint8Array, isCut: boolean): string {
  const isContinuation = (byte: number | undefined): boolean => byte !== undefined && byte >> 6 === 0b10
  let at = 0
  while (isCut && at < MAX_UTF8_TAIL && isContinuation(bytes[at])) at += 1
  return new TextDecoder().decode(bytes.subarray(at))
}

/** How a call is let into a sandbox. */
interface Entry {
  readonly need: Need
  /** Session that it is about. */
  readonly session?: string
  readonly mayStart: boolean
  readonly isIdempotent: boolean
}

/**
 * When a connection has to show its right again; undefined: never, because its credential does not end. A plain one cannot
 * come back, so it has all the time that its credential has, and control asks for it.
 */
function reauthorizeAt(
  { expiresMs, dialect }: Pick<AttachCall, 'expiresMs' | 'dialect'>,
  nowMs: number,
): number | undefined {
  if (expiresMs === undefined) return undefined
  return dialect === 'plain' ? expiresMs : nowMs + REAUTHORIZE_MS
}

/** Whom sandboxd sees. */
function person(call: SandboxCall | AttachCall, { need, authority, grant }: Access, nowMs: number): Caller {
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
   * Runs against the sandbox's sandboxd. When nothing answers at its address, the provider is asked once where it is
   * now; only another start of it is worth a second try, since whatever the first one began there is gone.
   */
  async reach<T>(
    call: SandboxCall,
    options: Entry,
    run: (running: Running, sandboxd: SandboxdClient, caller: Caller) => Promise<T>,
  ): Promise<T> {
    const { life, sandboxd } = this.#deps
    const allow = () => life.allow(call, options.need, options.session)
    const client = sandboxd(allow().record.id)
    const attempt = async (): Promise<T> => {
      const running = await this.#greeted(call, options.mayStart, client)
      // Again: a start takes long enough for a right to be withdrawn.
      return run(running, client, person(call, allow().access, this.#deps.nowMs()))
    }
    const before = await life.ready(call.requestId, options.mayStart)
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof SandwireError) || error.code !== 'sandbox_unreachable') throw error
      const now = await life.observe(call.requestId)
      const isSame = now.is === 'running' && now.epoch === before.epoch && now.address === before.address
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
    const { store, nowMs } = this.#deps
    const entry = { need: 'work', mayStart: true, isIdempotent: true } as const
    return this.reach(call, entry, async (running, sandboxd, caller) => {
      store.touch(nowMs())
      const asked = { method: 'POST', path: '/sessions', session, body: request } as const
      const facts = this.#decode(
        await sandboxd.ask(running.address, startingTemplate(caller, { ...start, ...call }), asked),
      )
      if (start.pinned === true) store.setPin(facts.id, true)
      return withPin(facts, store.pins())
    })
  }

  /** Marks a session as one to keep the sandbox awake for, or no longer. */
  async pin(call: SandboxCall, session: string, pinned: boolean): Promise<void> {
    const { life, store } = this.#deps
    life.allow(call, 'work', session)
    const { id } = await this.show(call, session)
    store.setPin(id, pinned)
  }

  async showPinned(call: SandboxCall, session: string): Promise<SessionFacts> {
    return withPin(await this.show(call, session), this.#deps.store.pins())
  }

  show(call: SandboxCall, session: string): Promise<SessionFacts> {
    return this.#existing(call, { need: 'watch', session }, async (running, sandboxd, caller) =>
      this.#decode(
        await sandboxd.ask(running.address, caller, { method: 'GET', path: `/sessions/${session}` }),
      ),
    )
  }

  end(call: SandboxCall, session: string): Promise<SessionFacts> {
    return this.#existing(call, { need: 'work', session }, async (running, sandboxd, caller) =>
      this.#decode(
        await sandboxd.ask(running.address, caller, { method: 'DELETE', path: `/sessions/${session}` }),
      ),
    )
  }

  /** Output from an offset on, as much of it as there is and the caller may have now. */
  async output(call: SandboxCall, session: string, from: number): Promise<OutputPart> {
    const { budget, nowMs } = this.#deps
    // Who may not see it hears that, and not how much others have read.
    this.#deps.life.allow(call, 'watch', session)
    budget.check(call.identity, nowMs())
    const part = await this.#read(call, session, from)
    const { byteLength } = part.bytes
    const sentBytes = budget.take(call.identity, byteLength, nowMs())
    if (sentBytes === byteLength) return part
    // Several came at once, and the others were first.
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
   * Starts a process, waits for its exit, and returns the last of what it wrote. Nobody reads while it runs, so its
   * output makes room for itself: a process that waits for a reader would never end. `onStart` is waited for once it runs.
   */
  async exec(
    call: SandboxCall,
    session: string,
    request: ProcessRequest,
    timeoutMs: number,
    onStart: () => Promise<void>,
  ): Promise<ExecResult> {
    const { life, budget, nowMs, sleep } = this.#deps
    life.allow(call, 'work')
    budget.check(call.identity, nowMs())
    const started = await this.startProcess(call, session, { ...request, overflow: 'trim' })
    const { id } = started
    await onStart()
    const { exit, output: kept } = await waitForExit(started, timeoutMs, {
      nowMs,
      sleep,
      show: () => this.show(call, id),
      end: () => this.#endUnasked(call.requestId, id),
    })
    const { bytes, from, next, end } = await this.#read(call, id, Math.max(0, kept.end - MAX_OUTPUT_BYTES))
    const skipped = bytes.byteLength - budget.take(call.identity, bytes.byteLength, nowMs())
    const isCut = from + skipped > 0 || next < end
    const output = decodeTail(new Uint8Array(bytes, skipped), from + skipped > 0)
    return { session: id, exit: { code: exit.code, signal: exit.signal }, output, isCut }
  }

  /** Ends a session whoever may still ask for that. */
  async #endUnasked(requestId: string, session: string): Promise<void> {
    const { life, sandboxd } = this.#deps
    const { address } = await life.ready(requestId, false)
    const path = `/sessions/${session}`
    await sandboxd(life.id).ask(address, controlItself(requestId), { method: 'DELETE', path })
  }

  /** A request that names a session wakes nothing. */
  #existing<T>(
    call: SandboxCall,
    entry: Pick<Entry, 'need' | 'session'>,
    run: (running: Running, sandboxd: SandboxdClient, caller: Caller) => Promise<T>,
  ): Promise<T> {
    return this.reach(call, { ...entry, mayStart: false, isIdempotent: true }, run)
  }

  #decode(value: unknown): SessionFacts {
    const { life, nowMs } = this.#deps
    const session = decodeOneSession(value, life.id, nowMs())
    if (session === undefined) throw notUnderstood()
    return session
  }

  /** The running sandbox, its sandboxd known to speak a version of ours; asked once per start. */
  async #greeted(call: SandboxCall, mayStart: boolean, sandboxd: SandboxdClient): Promise<Running> {
    const { life } = this.#deps
    const running = await life.ready(call.requestId, mayStart)
    if (running.protocol !== undefined) return running
    const protocol = await sandboxd.greet(running.address, call.requestId)
    await life.apply({ type: 'greeted', epoch: running.epoch, protocol })
    return { ...running, protocol }
  }
}
