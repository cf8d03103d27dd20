import { CreateLedger, limits, SandwireError, type SessionOptions } from '@sandwire/protocol'
import type { CreateParameters } from '../http/attach-parameters.ts'
import { resolveCwd } from '../http/workspace-path.ts'
import type { ProcessEnd } from '../processes/process.ts'
import type { Settings } from '../settings.ts'
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

/** Totals since the start, for `/metrics`. */
export interface Counters {
  started: number
  ended: number
  outputBytes: number
  inputBytes: number
}

type HostParts = Pick<HostDependencies, 'startProcess' | 'createScreen' | 'log' | 'now'>

/** Every session of this sandbox, created once per create id and forgotten when gone. */
export class SessionRegistry {
  readonly counters: Counters = { started: 0, ended: 0, outputBytes: 0, inputBytes: 0 }
  readonly #settings: Settings
  readonly #parts: HostParts
  readonly #mintId: () => string
  readonly #wallClock: () => number
  readonly #hosts = new Map<string, SessionHost>()
  readonly #ledger = new CreateLedger()
  readonly #exits: PastExit[] = []
  /** Ids of sessions that had a process and are gone, oldest first, so that whoever comes back is told the truth. */
  readonly #gone = new Set<string>()

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

  /** The session of this create id, made now if it is new. Throws `conflict`, `session_gone`, `too_many_sessions`, `bad_request`. */
  create(
    principal: string,
    createId: string | undefined,
    parameters: CreateParameters,
  ): { host: SessionHost; isNew: boolean } {
    const id = this.#mintId()
    const cwd = resolveCwd(this.#settings.workspace, parameters.cwd)
    if (createId !== undefined) {
      const fingerprint = JSON.stringify([
        parameters.argv,
        parameters.mode,
        cwd,
        parameters.keepSeconds,
        parameters.overflow,
      ])
      const existing = this.#claim({ principal, createId, fingerprint, session: id })
      if (existing !== undefined) return { host: existing, isNew: false }
    }
    if (this.#hosts.size >= this.#settings.maxSessions) {
      this.#ledger.release(id)
      throw new SandwireError(
        'too_many_sessions',
        `Cannot start a process: ${this.#hosts.size} sessions are running`,
      )
    }
    return { host: this.#host(id, parameters, cwd), isNew: true }
  }

  /** Ends everything; resolves when no process is left. */
  async shutDown(): Promise<void> {
    await Promise.all([...this.#hosts.values()].map((host) => host.shutDown()))
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

  #host(id: string, parameters: CreateParameters, cwd: string): SessionHost {
    const [command, ...args] = parameters.argv
    const options: SessionOptions = {
      id,
      mode: parameters.mode,
      overflow: parameters.overflow,
      keepSeconds: parameters.keepSeconds,
      limits: this.#settings.session,
    }
    const argv: [string, ...string[]] = command === undefined ? [...this.#settings.shell] : [command, ...args]
    const host = new SessionHost(
      options,
      { argv, cwd, baseEnv: this.#settings.baseEnv },
      {
        ...this.#parts,
        onExit: (session, end) => this.#exited(session, end),
        onGone: (session, wasStarted) => this.#forget(session, wasStarted),
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

  #forget(session: string, wasStarted: boolean): void {
    this.#hosts.delete(session)
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
