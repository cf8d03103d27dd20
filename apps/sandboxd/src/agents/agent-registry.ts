import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { type AgentStart, type AgentView, RUN_ID, type WorkspaceChange } from '@sandwire/agent'
import { SandwireError } from '@sandwire/protocol'
import { AgentRun, type AgentRunDependencies } from './agent-run.ts'
import { makeChange } from './base-tree/make-change.ts'
import { recoverRun } from './recover-run.ts'
import { NO_USAGE, RunRecord } from './run-record.ts'

/** Runs whose journals one sandbox keeps. */
const MAX_RUNS = 100
/** A resting program exits at once when its input ends; then its diff is made. */
const END_RESTING_MS = 10_000
/** Runs that share a sandbox at the same time. Claude Code takes about 250 MiB. */
const MAX_SHARED = 4
/** Part of the time for a stop in which an agent may end by itself. */
const GRACEFUL_SHARE = 0.5

export interface AgentRegistryDependencies extends AgentRunDependencies {
  /** Folder of sandboxd that the user can enter but neither list nor write; undefined: this sandboxd runs no agents. */
  readonly stateFolder: string | undefined
  readonly isTamperProof: boolean
  /** True while the interface of an agent is open in a terminal. */
  readonly hasTui: () => boolean
  readonly wallClock: () => number
}

/** The runs of this sandbox: at most one at work, or some that share, and those that have ended. */
export class AgentRegistry {
  readonly #deps: AgentRegistryDependencies
  readonly #runs = new Map<string, AgentRun>()
  readonly #records = new Map<string, RunRecord>()
  #isStopping = false
  #onShared: (record: RunRecord) => void = () => undefined

  constructor(deps: AgentRegistryDependencies) {
    this.#deps = deps
    const { stateFolder } = deps
    if (stateFolder === undefined) return
    const folder = this.#folder()
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, 0o711)
    for (const name of readdirSync(folder).filter((entry) => RUN_ID.test(entry))) this.#reopen(name)
  }

  /** Sets what is called with each new run that shares. */
  onShared(onShared: (record: RunRecord) => void): void {
    this.#onShared = onShared
  }

  /** Runs that have not ended; they keep the sandbox awake. */
  get activeCount(): number {
    return [...this.#records.values()].filter(({ result }) => result === undefined).length
  }

  /** Starts a run; false when the same request started it before. */
  start(
    id: string,
    start: AgentStart,
    startHash: string,
  ): { readonly view: AgentView; readonly isNew: boolean } {
    const known = this.#records.get(id)
    if (known !== undefined) {
      if (known.meta.startHash === startHash) return { view: this.view(id), isNew: false }
      throw new SandwireError('conflict', 'Cannot start the run: its id was used for another one')
    }
    const { stateFolder, wallClock, isTamperProof, randomHex, workspace, epochMs, hasTui } = this.#deps
    if (stateFolder === undefined)
      throw new SandwireError('bad_request', 'Cannot start the run: this sandbox has no folder for runs')
    if (this.#isStopping)
      throw new SandwireError('shutting_down', 'Cannot start the run: the sandbox is stopping')
    if (hasTui())
      throw new SandwireError(
        'agent_in_use',
        'Cannot start the agent: it is open in a terminal of this sandbox. Exit it there, then try again',
      )
    this.#checkOthers(start)
    if (start.shares === true) this.#removeOldest()
    if (this.#records.size >= MAX_RUNS)
      throw new SandwireError('conflict', `Cannot start the run: this sandbox keeps ${MAX_RUNS} already`)
    const meta = {
      run: id,
      journal: randomHex(16),
      startHash,
      startedMs: wallClock(),
      secrets: start.secrets,
      // The environment has the credentials of the run, and no event follows from it.
      driver: { start: withoutCredentials(start), workspace, epochMs, nonce: randomHex(10) },
      isTamperProof,
    }
    const record = new RunRecord(path.join(this.#folder(), id), wallClock, meta)
    this.#records.set(id, record)
    this.#runs.set(id, new AgentRun(record, start, this.#deps))
    if (start.shares === true) this.#onShared(record)
    return { view: this.view(id), isNew: true }
  }

  /** Throws `agent_in_use` while an agent works, or rests for a run: the same conversation must not be open twice. */
  checkTui(): void {
    if (this.activeCount === 0) return
    throw new SandwireError(
      'agent_in_use',
      'Cannot open the agent in a terminal: it works for a run or a conversation in this sandbox',
    )
  }

  /** Ends the program of a conversation that rests, and abandoned sessions, so that its agent can be opened in a terminal. Its next message starts it again. */
  async endResting(): Promise<void> {
    const resting = [...this.#runs.values()].filter(
      ({ record, state }) =>
        (state === 'idle' && record.meta.driver.start.yieldsToTui === true) || this.#isAbandoned(record),
    )
    for (const run of resting)
      run.on({ kind: 'stop', reason: 'aborted', message: 'The agent was opened in a terminal' })
    await Promise.race([Promise.all(resting.map((run) => run.ended)), Bun.sleep(END_RESTING_MS)])
  }

  /** Throws `not_found`. */
  record(id: string): RunRecord {
    const record = this.#records.get(id)
    if (record === undefined) throw new SandwireError('not_found', 'No such run')
    return record
  }

  /** A run of this sandboxd; undefined for one of an earlier sandboxd. Throws `not_found`. */
  run(id: string): AgentRun | undefined {
    this.record(id)
    return this.#runs.get(id)
  }

  view(id: string): AgentView {
    const record = this.record(id)
    return this.#runs.get(id)?.view() ?? viewRecord(record)
  }

  list(): readonly AgentView[] {
    return [...this.#records.keys()].map((id) => this.view(id))
  }

  /** The workspace as a change of its repository, in which work began with the branch `ref`, without files that contain a secret of a run, and the pack of its objects. */
  async readChange(
    ref: string | undefined,
  ): Promise<{ readonly change: WorkspaceChange; readonly pack: Uint8Array<ArrayBuffer> }> {
    const { tree, temporaryFolder } = this.#deps
    const folder = mkdtempSync(path.join(temporaryFolder, 'change-'))
    const packFile = path.join(folder, 'pack')
    try {
      const change = await makeChange(
        { ...tree(folder), scratchParent: temporaryFolder },
        {
          patchFile: path.join(folder, 'patch'),
          packFile,
          ref,
          secrets: [...this.#records.values()].flatMap(({ meta }) => meta.secrets),
        },
      )
      return {
        change,
        pack: change.diff.packBytes === null ? new Uint8Array() : new Uint8Array(readFileSync(packFile)),
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }

  remove(id: string): void {
    const record = this.record(id)
    if (record.result === undefined)
      throw new SandwireError('conflict', 'Cannot remove the run: it has not ended')
    record.remove()
    this.#records.delete(id)
    this.#runs.delete(id)
  }

  /** Ends the runs: by request, then by signal. Resolves when their results are stored, or the time is over. */
  async shutDown(timeMs: number): Promise<void> {
    this.#isStopping = true
    const runs = [...this.#runs.values()].filter(({ state }) => state !== 'ended')
    if (runs.length === 0) return
    const ended = Promise.all(runs.map((run) => run.ended))
    for (const run of runs) run.on({ kind: 'stop', reason: 'aborted', message: 'The sandbox was stopped' })
    await Promise.race([ended, Bun.sleep(timeMs * GRACEFUL_SHARE)])
    for (const run of runs) run.kill()
    await Promise.race([ended, Bun.sleep(timeMs * (1 - GRACEFUL_SHARE))])
  }

  /** Throws `conflict` when another run that is at work must end first. */
  #checkOthers({ shares, resume }: AgentStart): void {
    const others = [...this.#records.values()].filter(({ result }) => result === undefined)
    const isOpen = ({ meta }: RunRecord): boolean =>
      meta.driver.start.resume === resume || this.view(meta.run).agentSessionId === resume
    if (resume !== undefined && others.some(isOpen))
      throw new SandwireError(
        'conflict',
        'Cannot start the agent: its conversation is open in another session',
      )
    const abandoned = others.filter((record) => this.#isAbandoned(record))
    const atWork = others.filter((record) => !abandoned.includes(record))
    if (atWork.some(({ meta }) => shares !== true || meta.driver.start.shares !== true))
      throw new SandwireError('conflict', 'Cannot start the run: another one is at work in this sandbox')
    if (atWork.length >= MAX_SHARED)
      throw new SandwireError(
        'conflict',
        `Cannot start the session: ${MAX_SHARED} are open in this sandbox; close one of them first`,
      )
    if (shares === true && others.length < MAX_SHARED) return
    for (const { meta } of abandoned)
      this.#runs
        .get(meta.run)
        ?.on({ kind: 'stop', reason: 'completed', message: 'Another session needs the room' })
  }

  /** True for a session of `/ws/claude-stream` that has nothing to do and no client. Its conversation can be resumed. */
  #isAbandoned({ meta, lineFeed }: RunRecord): boolean {
    const isIdle = this.#runs.get(meta.run)?.state === 'idle'
    // The session itself follows its journal.
    return meta.driver.start.shares === true && isIdle && lineFeed.size <= 1
  }

  /** Makes room for the journal of a session of `/ws/claude-stream`: clients open any number of them. */
  #removeOldest(): void {
    if (this.#records.size < MAX_RUNS) return
    const oldest = [...this.#records.values()]
      .filter(({ result, meta }) => result !== undefined && meta.driver.start.shares === true)
      .toSorted((left, right) => left.meta.startedMs - right.meta.startedMs)[0]
    if (oldest !== undefined) this.remove(oldest.meta.run)
  }

  #folder(): string {
    return path.join(this.#deps.stateFolder ?? '', 'agents')
  }

  #reopen(name: string): void {
    const { wallClock, log } = this.#deps
    try {
      const record = new RunRecord(path.join(this.#folder(), name), wallClock)
      this.#records.set(name, record)
      if (record.result === undefined)
        void recoverRun(record, this.#deps).catch((error: unknown) =>
          log.error('agent_not_recovered', { run: name, message: String(error) }),
        )
    } catch (error) {
      // Without its description a run cannot be used; it began in the moment of the crash.
      log.warn('agent_unreadable', { run: name, message: String(error) })
    }
  }
}

function withoutCredentials({ wake: _wake, ...start }: AgentStart): AgentStart {
  return { ...start, env: {} }
}

/** A run of an earlier sandboxd. */
function viewRecord({ meta, events, result }: RunRecord): AgentView {
  return {
    run: meta.run,
    journal: meta.journal,
    state: result === undefined ? 'collecting' : 'ended',
    lastSeq: events.lastSeq,
    startedMs: meta.startedMs,
    endedMs: result?.endedMs ?? null,
    reason: result?.status ?? 'crashed',
    message: result?.message ?? null,
    agentSessionId: result?.agentSessionId ?? null,
    model: result?.model ?? null,
    usage: result?.usage ?? NO_USAGE,
    approvals: [],
    isTamperProof: meta.isTamperProof,
  }
}
