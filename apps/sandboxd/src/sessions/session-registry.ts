import { CreateLedger, limits, SandwireError, type SessionOptions } from '@sandwire/protocol'
import type { Caller } from '../caller.ts'
import type { ProcessEnd } from '../processes/process.ts'
import type { Settings } from '../settings.ts'
import type { ShutdownPlan } from '../shutdown.ts'
import type { CreateParameters } from './create-parameters.ts'
import { latest } from './latest.ts'
import { resolveCwd } from './resolve-cwd.ts'
import { type HostDependencies, SessionHost } from './session-host.ts'

/** A process that has ended, for whoever keeps an index. */
export interface PastExit {
  readonly session: string
  readonly code: number | null
  readonly signal: string | null
  readonly atMs: number
}

/** Exits remembered for `/activity`. */
const MAX_PAST_EXITS = 256

/** What was refused to a request after its answer, which whoever passed it on has not seen. */
export interface LateRefusal {
  readonly requestId: string
  readonly code: string
}

/** Of these; a flood of them pushes out older ones. */
const MAX_LATE_REFUSALS = 256

/** Totals since the start, for `/metrics`. */
export interface Counters {
  started: number
  ended: number
  outputBytes: number
  inputBytes: number
}

/** A session to make, and for whom. */
export interface CreateRequest {
  readonly caller: Caller
  readonly requestId: string
  readonly createId: string | undefined
  readonly create: CreateParameters
}

/** Which attachments are meant: those that match everything given. */
export interface AttachmentFilter {
  readonly identity?: string
  readonly login?: string
  readonly grant?: string
  readonly session?: string
  readonly attachment?: string
}

type HostParts = Pick<HostDependencies, 'startProcess' | 'createScreen' | 'log' | 'now'> & {
  /** Looks at files as the user whom processes run as. */
  readonly asUser: <T>(action: () => T) => T
}

/** Every session of this sandbox, created once per create id and forgotten when gone. */
export class SessionRegistry {
  readonly counters: Counters = { started: 0, ended: 0, outputBytes: 0, inputBytes: 0 }
  /** When sessions that are gone last had input and output, in monotonic milliseconds. */
  readonly past: { lastInputMs: number | null; lastOutputMs: number | null } = {
    lastInputMs: null,
    lastOutputMs: null,
  }
  readonly #settings: Settings
  readonly #parts: HostParts
  readonly #mintId: () => string
  readonly #wallClock: () => number
  readonly #hosts = new Map<string, SessionHost>()
  readonly #ledger = new CreateLedger()
  readonly #exits: PastExit[] = []
  readonly #refusals: LateRefusal[] = []
  /** Ids of sessions that had a process and are gone, oldest first, so that whoever comes back is told the truth. */
  readonly #gone = new Set<string>()
  #isStopping = false

  constructor(
    settings: Settings,
    parts: HostParts,
    random: { mintId: () => string; wallClock: () => number },
  ) {
    this.#settings = settings
    this.#parts = parts
    this.#mintId = random.mintId
    this.#wallClock = random.wallClock
  }

  get size(): number {
    return this.#hosts.size
  }

  get exits(): readonly PastExit[] {
    return this.#exits
  }

  /** Oldest first. */
  get refusals(): readonly LateRefusal[] {
    return this.#refusals
  }

  all(): Iterable<SessionHost> {
    return this.#hosts.values()
  }

  find(id: string): SessionHost {
    const host = this.#hosts.get(id)
    if (host !== undefined) return host
    throw this.#gone.has(id)
      ? new SandwireError('session_gone', 'The session of this id has ended')
      : new SandwireError('session_not_found', 'No session has this id')
  }

  /** The session of this create id, made now if it is new. Throws `conflict`, `session_gone`, `too_many_sessions`, `path_refused`. */
  create(request: CreateRequest): { host: SessionHost; isNew: boolean } {
    const { caller, createId, create } = request
    const isTaken = caller.session !== undefined && this.#isKnown(caller.session)
    // A repeated create is answered by its create id, whatever id was meant for it this time.
    const id = caller.session === undefined || isTaken ? this.#mintId() : caller.session
    const cwd = this.#parts.asUser(() => resolveCwd(this.#settings.workspace, create.cwd))
    if (createId !== undefined) {
      const { argv, mode, keepSeconds, overflow, isPinned } = create
      const fingerprint = JSON.stringify([argv, mode, cwd, keepSeconds, overflow, isPinned, caller.env])
      const existing = this.#claim({ principal: caller.identity, createId, fingerprint, session: id })
      if (existing !== undefined) return { host: existing, isNew: false }
    }
    const refusal = isTaken
      ? new SandwireError('conflict', 'Cannot create: a session of this id was made before')
      : this.#refuseMore()
    if (refusal === undefined) return { host: this.#host(id, request, cwd), isNew: true }
    this.#ledger.release(id)
    throw refusal
  }

  #isKnown(id: string): boolean {
    return this.#hosts.has(id) || this.#gone.has(id)
  }

  #refuseMore(): SandwireError | undefined {
    if (this.#isStopping)
      return new SandwireError('shutting_down', 'Cannot start a process: the sandbox is stopping')
    const { size } = this.#hosts
    if (size < this.#settings.maxSessions) return undefined
    return new SandwireError('too_many_sessions', `Cannot start a process: ${size} sessions are running`)
  }

  /** Cuts off the attachments that match; returns how many had a connection. */
  revoke({ identity, session, ...rest }: AttachmentFilter): number {
    let closed = 0
    for (const host of Array.from(this.#hosts.values())) {
      if (session === undefined || host.session.id === session)
        closed += host.revoke({ principal: identity, ...rest })
    }
    return closed
  }

  /** Starts nothing more and ends everything; resolves when no process is left. */
  async shutDown(plan: ShutdownPlan): Promise<void> {
    this.#isStopping = true
    await Promise.all([...this.#hosts.values()].map((host) => host.shutDown(plan)))
  }

  #claim(claim: {
    principal: string
    createId: string
    fingerprint: string
    session: string
  }): SessionHost | undefined {
    const answer = this.#ledger.claim(claim)
    switch (answer.kind) {
      case 'new':
        return undefined
      case 'existing':
        return this.find(answer.session)
      case 'conflict':
        throw new SandwireError('conflict', 'Cannot create: the create id was used with other parameters')
      case 'gone':
        throw new SandwireError('session_gone', 'Cannot create: the session of this create id has ended')
    }
  }

  #host(id: string, { create, requestId, caller }: CreateRequest, cwd: string): SessionHost {
    const [command, ...args] = create.argv
    const options: SessionOptions = {
      id,
      mode: create.mode,
      overflow: create.overflow,
      keepSeconds: create.keepSeconds,
      limits: this.#settings.session,
    }
    const argv: [string, ...string[]] = command === undefined ? [...this.#settings.shell] : [command, ...args]
    const host = new SessionHost(
      options,
      {
        argv,
        cwd,
        baseEnv: this.#settings.baseEnv,
        isPinned: create.isPinned,
        requestId,
        isTemplate: caller.starts === true,
        ...(caller.env === undefined ? {} : { fixedEnv: caller.env }),
      },
      {
        ...this.#parts,
        onExit: (session, end) => this.#exited(session, end),
        onGone: (session, wasStarted) => this.#forget(session, wasStarted),
        onRefused: (refused, code) => this.#refused(refused, code),
        countOutput: (bytes) => (this.counters.outputBytes += bytes),
        countInput: (bytes) => (this.counters.inputBytes += bytes),
      },
    )
    this.counters.started += 1
    this.#hosts.set(id, host)
    return host
  }

  #exited(session: string, end: ProcessEnd): void {
    this.counters.ended += 1
    this.#exits.push({ session, code: end.code, signal: end.signal, atMs: this.#wallClock() })
    if (this.#exits.length > MAX_PAST_EXITS) this.#exits.shift()
  }

  #refused(requestId: string, code: string): void {
    this.#refusals.push({ requestId, code })
    if (this.#refusals.length > MAX_LATE_REFUSALS) this.#refusals.shift()
  }

  #forget(session: string, wasStarted: boolean): void {
    const host = this.#hosts.get(session)
    this.#hosts.delete(session)
    if (host !== undefined) {
      this.past.lastInputMs = latest([this.past.lastInputMs, host.session.lastInputMs])
      this.past.lastOutputMs = latest([this.past.lastOutputMs, host.session.lastOutputMs])
    }
    if (!wasStarted) {
      this.#ledger.release(session)
      return
    }
    this.#ledger.bury(session)
    this.#gone.add(session)
    for (const oldest of this.#gone) {
      if (this.#gone.size <= limits.MAX_TOMBSTONES) return
      this.#gone.delete(oldest)
    }
  }
}
