import type { AgentTui } from '@sandwire/internal-api'
import {
  type ConnectionId,
  CreateLedger,
  type CreateParameters,
  limits,
  limitTimeout,
  SandwireError,
  type SessionOptions,
} from '@sandwire/protocol'
import { conversationOf, openTui, type TuiCommand } from '../agents/agent-tui.ts'
import type { Caller } from '../caller.ts'
import type { ProcessEnd, StartProcess } from '../processes/process.ts'
import type { Settings } from '../settings.ts'
import type { ShutdownPlan } from '../shutdown-plan.ts'
import { resolveCwd } from './resolve-cwd.ts'
import { type RunnerDependencies, SessionRunner } from './session-runner.ts'

/** The exit of a process, which control reads from `/activity`. */
export interface PastExit {
  readonly session: string
  readonly code: number | null
  readonly signal: string | null
  readonly atMs: number
}

/** Exits kept for `/activity`. */
const MAX_PAST_EXITS = 256

/** A refusal sent as a frame after the upgrade, which control does not see because it reads no frames. */
export interface FrameRefusal {
  readonly requestId: string
  readonly code: string
}

/** Refusals kept for `/activity`, the newest ones. */
const MAX_FRAME_REFUSALS = 256

/** Close codes that are counted apart: clients choose among thousands. */
const MAX_CLOSE_CODES = 64
const OTHER_CLOSE_CODE = 0

/** Totals since the start, for `/metrics`. */
export interface Counters {
  started: number
  ended: number
  outputBytes: number
  inputBytes: number
  /** Closed connections by WebSocket close code; 1006 is a lost connection. */
  readonly disconnects: Map<number, number>
}

/** A session to create, and the caller it is for. */
export interface CreateRequest {
  readonly caller: Caller
  readonly requestId: string
  readonly createId: string | undefined
  readonly create: CreateParameters
}

/** Selects the attachments that match every given field. */
export interface AttachmentFilter {
  readonly identity?: string
  readonly login?: string
  readonly grant?: string
  readonly session?: string
  readonly attachment?: string
}

/** Grants whose sessions were ended, which start no others; the newest ones. Control refuses them too. */
const MAX_ENDED_GRANTS = 1_000

type RunnerParts = Pick<RunnerDependencies, 'startProcess' | 'createScreen' | 'log' | 'now'> & {
  /** Accesses files as the user that processes run as. */
  readonly asUser: <T>(action: () => T) => T
  /** For files of the interfaces of agents. */
  readonly temporaryFolder: string
  /** Panes of tmux. */
  readonly panes: {
    /** Connects to a server, so that its panes are known. */
    readonly view: () => Promise<unknown>
    readonly sizeOf: (pane: string) => unknown
    readonly startPane: (pane: string) => StartProcess
    readonly typeInto: (pane: string, target: string, bytes: Uint8Array) => Promise<boolean>
  }
}

/** Every session of this sandbox, created once per create id and removed when it ends. */
export class SessionRegistry {
  readonly counters: Counters = {
    started: 0,
    ended: 0,
    outputBytes: 0,
    inputBytes: 0,
    disconnects: new Map(),
  }
  /** Last input and output of removed sessions, in monotonic milliseconds. */
  readonly past: { lastInputMs: number | null; lastOutputMs: number | null } = {
    lastInputMs: null,
    lastOutputMs: null,
  }
  readonly #settings: Settings
  readonly #parts: RunnerParts
  readonly #mintId: () => string
  readonly #wallClock: () => number
  readonly #runners = new Map<string, SessionRunner>()
  /** Sessions whose process has exited or could not be started, oldest first. */
  readonly #finished = new Set<SessionRunner>()
  readonly #ledger = new CreateLedger()
  readonly #exits: PastExit[] = []
  readonly #refusals: FrameRefusal[] = []
  /** Ids of removed sessions that had a process, oldest first, so that a returning client gets `session_gone`. */
  readonly #gone = new Set<string>()
  readonly #endedGrants = new Set<string>()
  #isStopping = false
  #connections = 0

  constructor(
    settings: Settings,
    parts: RunnerParts,
    random: { mintId: () => string; wallClock: () => number },
  ) {
    this.#settings = settings
    this.#parts = parts
    this.#mintId = random.mintId
    this.#wallClock = random.wallClock
  }

  get size(): number {
    return this.#runners.size
  }

  get exits(): readonly PastExit[] {
    return this.#exits
  }

  /** Oldest first. */
  get refusals(): readonly FrameRefusal[] {
    return this.#refusals
  }

  all(): Iterable<SessionRunner> {
    return this.#runners.values()
  }

  /** True while the interface of a coding agent is open, or about to be. */
  get hasAgentTui(): boolean {
    return this.#agentTuis.length > 0
  }

  get #agentTuis(): readonly NonNullable<SessionRunner['command']['agentTui']>[] {
    return [...this.#runners.values()].flatMap(({ command: { agentTui }, session }) =>
      agentTui !== undefined && ['pending', 'running'].includes(session.state.kind) ? [agentTui] : [],
    )
  }

  find(id: string): SessionRunner {
    const runner = this.#runners.get(id)
    if (runner !== undefined) return runner
    throw this.#gone.has(id)
      ? new SandwireError('session_gone', 'The session of this id has ended')
      : new SandwireError('session_not_found', 'No session has this id')
  }

  /** An id for a connection to any session. */
  mintConnection(): ConnectionId {
    this.#connections += 1
    return this.#connections
  }

  /** Must be awaited before `create` for a pane. */
  async findPanes(): Promise<void> {
    await this.#parts.panes.view()
  }

  /** The session of this create id, created if there is none. Throws `conflict`, `session_gone`, `too_many_sessions`, `path_refused`. */
  create(request: CreateRequest): { runner: SessionRunner; isNew: boolean } {
    const { caller, createId, create } = request
    // A request that control sent before the grant was revoked.
    if (caller.grant !== undefined && this.#endedGrants.has(caller.grant))
      throw new SandwireError('revoked', 'Cannot start a process: access to the sandbox was revoked')
    const isTaken = caller.session !== undefined && this.#isKnown(caller.session)
    // A repeated create is found by its create id, whatever session id it brings this time.
    const id = caller.session === undefined || isTaken ? this.#mintId() : caller.session
    const opened = create.pane === undefined ? undefined : this.#findPane(create.pane)
    // A plain client has no create id, and a session of its own.
    if (opened !== undefined && createId !== undefined) return { runner: opened, isNew: false }
    const cwd = this.#parts.asUser(() => resolveCwd(this.#settings.workspace, create.cwd))
    if (createId !== undefined) {
      const { argv, mode, keepSeconds, overflow, isPinned, lifetimeSeconds, idleSeconds } = create
      const timeouts = [keepSeconds, lifetimeSeconds, idleSeconds]
      const fingerprint = JSON.stringify([argv, mode, cwd, timeouts, overflow, isPinned, caller.env])
      const existing = this.#claim({ principal: caller.identity, createId, fingerprint, session: id })
      if (existing !== undefined) return { runner: existing, isNew: false }
    }
    const refusal = isTaken
      ? new SandwireError('conflict', 'Cannot create: this session id was used before')
      : this.#checkCapacity()
    try {
      if (refusal !== undefined) throw refusal
      return { runner: this.#create(id, request, cwd), isNew: true }
    } catch (error) {
      this.#ledger.release(id)
      throw error
    }
  }

  /** The session of a pane that is open already; throws when tmux has no such pane. */
  #findPane(pane: string): SessionRunner | undefined {
    if (this.#parts.panes.sizeOf(pane) === undefined)
      throw new SandwireError('session_not_found', `Cannot open the pane: tmux has no pane ${pane}`)
    return [...this.#runners.values()].find(
      ({ command, session }) => command.pane === pane && ['pending', 'running'].includes(session.state.kind),
    )
  }

  #isKnown(id: string): boolean {
    return this.#runners.has(id) || this.#gone.has(id)
  }

  #checkCapacity(): SandwireError | undefined {
    if (this.#isStopping)
      return new SandwireError('shutting_down', 'Cannot start a process: the sandbox is stopping')
    const { size } = this.#runners
    if (size < this.#settings.maxSessions || this.#makeRoom()) return undefined
    return new SandwireError('too_many_sessions', `Cannot start a process: ${size} sessions are running`)
  }

  countDisconnect(code: number): void {
    const { disconnects } = this.counters
    const known = disconnects.has(code) || disconnects.size < MAX_CLOSE_CODES ? code : OTHER_CLOSE_CODE
    disconnects.set(known, (disconnects.get(known) ?? 0) + 1)
  }

  /** Removes the session that finished first and has no connection; false when there is none. */
  #makeRoom(): boolean {
    for (const runner of this.#finished) {
      if (runner.session.attachments.attachedCount > 0) continue
      runner.forget()
      return true
    }
    return false
  }

  /** Closes the attachments that match; returns how many had a connection. */
  revoke({ identity, session, ...rest }: AttachmentFilter): number {
    const named = session === undefined ? undefined : this.#runners.get(session)
    const runners = session === undefined ? [...this.#runners.values()] : named === undefined ? [] : [named]
    let closed = 0
    for (const runner of runners) closed += runner.revoke({ principal: identity, ...rest })
    return closed
  }

  /** Ends the sessions that a grant authorized to start, and refuses further ones. */
  endSessionsOf(grant: string): void {
    this.#endedGrants.add(grant)
    const [oldest] = this.#endedGrants
    if (this.#endedGrants.size > MAX_ENDED_GRANTS && oldest !== undefined) this.#endedGrants.delete(oldest)
    for (const runner of Array.from(this.#runners.values())) if (runner.command.grant === grant) runner.end()
  }

  /** Refuses new sessions and ends all others; resolves when no process is left, at the deadline at the latest. */
  async shutDown(plan: ShutdownPlan): Promise<void> {
    this.#isStopping = true
    await Promise.all([...this.#runners.values()].map((runner) => runner.shutDown(plan)))
  }

  #claim(claim: {
    principal: string
    createId: string
    fingerprint: string
    session: string
  }): SessionRunner | undefined {
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

  #create(id: string, { create, requestId, caller }: CreateRequest, cwd: string): SessionRunner {
    const [command, ...args] = create.argv
    const options: SessionOptions = {
      id,
      mode: create.mode,
      overflow: create.overflow,
      keepSeconds: create.keepSeconds,
      lifetimeSeconds: limitTimeout(create.lifetimeSeconds, this.#settings.maxLifetimeSeconds),
      idleSeconds: limitTimeout(create.idleSeconds, this.#settings.maxIdleSeconds),
      ...(create.pane === undefined ? {} : { sizeFrom: 'process' }),
      limits: this.#settings.session,
    }
    const own: [string, ...string[]] = command === undefined ? [...this.#settings.shell] : [command, ...args]
    const { agentTui } = caller
    const conversation = agentTui === undefined ? undefined : conversationOf(args)
    if (conversation !== undefined && this.#agentTuis.some((open) => open.conversation === conversation))
      throw new SandwireError(
        'agent_in_use',
        'Cannot open the conversation: it is open in another terminal of this sandbox. Exit it there, then try again',
      )
    const tui = agentTui === undefined ? undefined : this.#openTui(agentTui, args, cwd)
    const argv: readonly [string, ...string[]] =
      create.pane === undefined ? (tui?.argv ?? own) : ['tmux', create.pane]
    const fixedEnv = tui?.env ?? caller.env
    const runner = new SessionRunner(
      options,
      {
        argv,
        cwd,
        baseEnv: this.#settings.baseEnv,
        isPinned: create.isPinned,
        ...(create.pane === undefined ? {} : { pane: create.pane }),
        requestId,
        isTemplate: caller.starts === true,
        ...(caller.grant === undefined ? {} : { grant: caller.grant }),
        ...(fixedEnv === undefined ? {} : { fixedEnv }),
        ...(tui === undefined ? {} : { agentTui: { conversation } }),
        ...(caller.agentRun === undefined ? {} : { agentRun: caller.agentRun }),
      },
      {
        ...this.#parts,
        writePane: (pane, target, bytes) => this.#parts.panes.typeInto(pane, target, bytes),
        ...(create.pane === undefined ? {} : { startProcess: this.#parts.panes.startPane(create.pane) }),
        onExit: (session, end) => {
          tui?.close()
          this.#exited(session, end)
        },
        onFinished: (runner) => this.#finished.add(runner),
        onGone: (session, wasStarted) => {
          // Also of one that was never started.
          tui?.close()
          this.#removed(session, wasStarted)
        },
        onRefused: (refused, code) => this.#refused(refused, code),
        countOutput: (bytes) => (this.counters.outputBytes += bytes),
        countInput: (bytes) => (this.counters.inputBytes += bytes),
      },
    )
    this.counters.started += 1
    this.#runners.set(id, runner)
    return runner
  }

  #openTui(agentTui: AgentTui, args: readonly string[], cwd: string): TuiCommand {
    const { asUser, temporaryFolder } = this.#parts
    const home = this.#settings.baseEnv['HOME'] ?? '/'
    try {
      return openTui(agentTui, args, { asUser, temporaryFolder, home, cwd })
    } catch (error) {
      // Its files are the user's, on a disk that may be full.
      throw new SandwireError('spawn_failed', 'Cannot open the agent: cannot write its settings', {
        cause: error,
      })
    }
  }

  #exited(session: string, end: ProcessEnd): void {
    this.counters.ended += 1
    this.#exits.push({ session, code: end.code, signal: end.signal, atMs: this.#wallClock() })
    if (this.#exits.length > MAX_PAST_EXITS) this.#exits.shift()
  }

  #refused(requestId: string, code: string): void {
    this.#refusals.push({ requestId, code })
    if (this.#refusals.length > MAX_FRAME_REFUSALS) this.#refusals.shift()
  }

  #removed(session: string, wasStarted: boolean): void {
    const runner = this.#runners.get(session)
    this.#runners.delete(session)
    if (runner !== undefined) {
      this.#finished.delete(runner)
      this.past.lastInputMs = latest([this.past.lastInputMs, runner.session.lastInputMs])
      this.past.lastOutputMs = latest([this.past.lastOutputMs, runner.session.lastOutputMs])
    }
    if (!wasStarted) {
      this.#ledger.release(session)
      return
    }
    this.#ledger.markEnded(session)
    this.#gone.add(session)
    for (const oldest of this.#gone) {
      if (this.#gone.size <= limits.MAX_TOMBSTONES) return
      this.#gone.delete(oldest)
    }
  }
}

/** The latest of the known times. */
export function latest(times: readonly (number | null)[]): number | null {
  return times.reduce((last, time) => (last === null || (time !== null && time > last) ? time : last), null)
}
