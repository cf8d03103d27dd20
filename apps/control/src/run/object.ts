import { DurableObject } from 'cloudflare:workers'
import type { ApprovalAnswer, ApprovalView, MessageView } from '@sandwire/agent'
import { SandwireError } from '@sandwire/protocol'
import { signInEnded } from '../auth/identity.ts'
import type { Env } from '../env.ts'
import { CODE_HEADER, respondError } from '../http/respond.ts'
import { errorOf, type Outcome, settle, unwrap } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import { ObjectAlarm } from '../sandbox/alarm.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import { noSuchRun } from '../sandbox/not-found.ts'
import {
  type BindingMethods,
  type ExecuteOptions,
  type ExecuteResult,
  openBindingMethods,
  type ResearchResult,
  type ReviewOptions,
  type ReviewResult,
} from './binding-methods.ts'
import { type AgentNeed, auditAgentCall, authorizeAgent, authorizeRestore, hasLostAccess } from './access.ts'
import { parseRunCall, type RunStreamCall } from './call.ts'
import { openClaudeStream } from './claude-stream.ts'
import { openRunParts, type RunParts } from './parts.ts'
import { changeOf, type Publication, publishChange, publishableOf, publisherOf } from './publish.ts'
import type { Published } from './published.ts'
import type { RunRecord } from './record.ts'
import { isSteerable } from './state.ts'
import { RunStore } from './store.ts'
import { streamEvents } from './stream-events.ts'
import {
  forgetVersion,
  MAX_UNDO_VERSIONS,
  type RestorePointsView,
  type RestoreTarget,
  versionOf,
} from './turns.ts'
import { TypingLimit } from './typing-limit.ts'
import type { Watcher } from './watcher.ts'
import { openRunTerminal } from './terminal.ts'
import { type RunView, viewOf } from './view.ts'

/** Between two wake requests that have an effect: a process in the sandbox can send them. */
const WAKE_MS = 250
/** How long a call waits for the end of a run before it returns what is known. */
const MAX_WAIT_MS = 20_000
const WAIT_POLL_MS = 250
/** Streams of events and terminals of one run that an account has open at the same time. */
const MAX_WATCHERS = 64
const DAY_MS = 24 * 60 * 60 * 1000
/** After a crash during a restore. */
const RESTORE_RETRY_MS = 60_000
const LOST_ACCESS = 'Who started the run lost the access to its sandbox'

/**
 * One run of a coding agent: its record, events, result and diff, which outlive its sandbox. Other Workers bind the class as
 * `ClaudeSandbox`; they may call `startSession` and `execute` on an object of any name, which creates the run's own object.
 */
export class RunObject extends DurableObject<Env> {
  readonly #store: RunStore
  readonly #alarm: ObjectAlarm
  #parts: Promise<RunParts> | undefined
  #wokenMs = 0
  /** Number of open streams of events and terminals by account, so that none takes those of others. */
  readonly #watchers = new Map<string, number>()
  readonly #typing = new TypingLimit()

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#store = new RunStore(ctx.storage.sql)
    this.#alarm = new ObjectAlarm(ctx.storage)
    runtimeOf(env).metrics.count('sandwire_objects_constructed_total', { class: 'run' })
  }

  /** Stores a new run and begins it; an existing one is returned as it is. */
  create(record: RunRecord, call: SandboxCall): Promise<Outcome<RunView>> {
    return this.#run(async () => {
      if (this.#store.read() === undefined) {
        await this.#audit(record, call)
        this.#store.insert(record)
      }
      await this.#alarm.setBy(Date.now())
      return viewOf(this.#record)
    })
  }

  describe(call: SandboxCall): Promise<Outcome<RunView>> {
    return this.#run(async ({ lifecycle }) => {
      await this.#authorize(call, 'watch')
      await lifecycle.refresh()
      const record = this.#record
      const isOwner = call.identity === record.owner
      const publishable = isOwner ? publishableOf(publisherOf(this.env), record) : null
      return { ...viewOf(record), publishable }
    })
  }

  /** Throws `run_not_found` unless there is a run. */
  check(): Promise<Outcome<void>> {
    return this.#run(() => void this.#record)
  }

  /** Sends a message to the agent. The same id again sends nothing. */
  sendMessage(
    call: SandboxCall,
    message: { readonly id: string; readonly text: string },
  ): Promise<Outcome<MessageView>> {
    return this.#steer(call, async ({ sandbox }) => {
      await sandbox.hold(message.id)
      return sandbox.json('POST', '/messages', { ...message, by: call.identity })
    })
  }

  /** Messages with the files that are kept for them. */
  restorePoints(call: SandboxCall): Promise<Outcome<RestorePointsView>> {
    return this.#run(async () => {
      await this.#authorize(call, 'watch')
      return this.#restorePoints()
    })
  }

  /** Restores the files to those of the time at which a message was sent, or undoes that. */
  restoreFiles(call: SandboxCall, target: RestoreTarget): Promise<Outcome<RestorePointsView>> {
    return this.#run(async () => {
      await authorizeRestore(this.env, this.#record, call, noSuchRun)
      const { state, turns = [], undoVersions = [], restore = null } = this.#record
      if (state.kind !== 'ended')
        throw new SandwireError('conflict', 'Cannot restore the files: the run has not ended')
      if (restore !== null)
        throw new SandwireError('conflict', 'Cannot restore the files: another restore is in progress')
      const version = versionOf({ turns, undoVersions }, target)
      if (version === undefined)
        throw 'undo' in target
          ? new SandwireError('conflict', 'Cannot undo: no files were restored')
          : new SandwireError('not_found', 'Cannot restore the files: none are kept for this message')
      await this.#audit(this.#record, call)
      this.#store.update({ restore: { key: crypto.randomUUID(), version, by: call.identity } })
      // Finishes it if this object ends meanwhile.
      await this.#alarm.setBy(Date.now() + RESTORE_RETRY_MS)
      await this.#restore()
      return this.#restorePoints()
    })
  }

  async #restore(): Promise<void> {
    const { restore = null, undoVersions = [], turns = [] } = this.#record
    if (restore === null) return
    const { sandbox } = await this.#openParts()
    try {
      const undoVersion = await sandbox.restore(restore)
      this.#store.update({
        restore: null,
        undoVersions: [...undoVersions, undoVersion].slice(-MAX_UNDO_VERSIONS),
      })
    } catch (error) {
      const isDeleted = SandwireError.from(error).code === 'not_found'
      const points = isDeleted ? forgetVersion({ turns, undoVersions }, restore.version) : {}
      this.#store.update({ restore: null, ...points })
      throw error
    }
  }

  #restorePoints(): RestorePointsView {
    const { turns = [], undoVersions = [], restore = null } = this.#record
    return { turns, canUndo: undoVersions.length > 0, isRestoring: restore !== null }
  }

  /** Answers a request of the agent; the first answer counts. */
  answer(call: SandboxCall, answer: Omit<ApprovalAnswer, 'by'>): Promise<Outcome<ApprovalView>> {
    return this.#steer(call, ({ sandbox }) =>
      sandbox.json('POST', '/approvals', { ...answer, by: call.identity }),
    )
  }

  /** Ends the agent's turn; it keeps its conversation. */
  interrupt(call: SandboxCall): Promise<Outcome<RunView>> {
    return this.#run(async () => {
      unwrap(await this.#steer(call, ({ sandbox }) => sandbox.json('POST', '/interrupt')))
      return viewOf(this.#record)
    })
  }

  abortRun(call: SandboxCall): Promise<Outcome<RunView>> {
    return this.#run(async ({ lifecycle }) => {
      await this.#authorize(call, 'steer')
      await this.#audit(this.#record, call)
      await lifecycle.stop('aborted', `Aborted by ${call.name}`)
      this.#advanceSoon()
      return viewOf(this.#record)
    })
  }

  /** Pushes the changes of an ended run as a commit on a new branch, and opens a pull request if that is wanted. */
  publish(call: SandboxCall, publication: Publication): Promise<Outcome<Published>> {
    return this.#run(async ({ packs }) => {
      await this.#authorize(call, 'own')
      const record = this.#record
      const change = changeOf(record)
      await this.#audit(record, call)
      const pack = new Uint8Array(await new Response(await packs.read()).arrayBuffer())
      return publishChange(publisherOf(this.env), { ...change, pack }, publication, (published) => {
        if (this.#store.read() !== undefined) this.#store.update({ published })
      })
    })
  }

  /** Deletes an ended run with its events and its diff. */
  remove(call: SandboxCall): Promise<Outcome<void>> {
    return this.#run(async () => {
      await this.#authorize(call, 'own')
      const record = this.#record
      if (record.state.kind !== 'ended')
        throw new SandwireError('conflict', 'Cannot delete the run: it has not ended; abort it first')
      await this.#audit(record, call)
      await this.#delete()
    })
  }

  /** Ends and deletes the run of a deleted account. */
  deleteOrphaned(): Promise<Outcome<void>> {
    return this.#run(async ({ sandbox, grants }) => {
      const record = this.#store.read()
      if (record === undefined) return
      if (record.state.kind !== 'ended') {
        await grants.end(record.id).catch(() => undefined)
        await sandbox.release()
      }
      await this.#delete()
    })
  }

  /** Something has changed in the sandbox or in the queue. Anything in the sandbox may call this, so it only causes a pull. */
  async wake(): Promise<void> {
    if (this.#store.read() === undefined) return
    const nowMs = Date.now()
    const atMs = Math.max(nowMs, this.#wokenMs + WAKE_MS)
    this.#wokenMs = atMs
    await this.#alarm.setBy(atMs)
  }

  /** The run, when it has ended or after a while. Only for other objects of this server. */
  waitForEnd(): Promise<Outcome<RunView>> {
    const { sleep } = runtimeOf(this.env)
    return this.#run(async () => {
      for (let waitedMs = 0; this.#record.state.kind !== 'ended' && waitedMs < MAX_WAIT_MS;) {
        await sleep(WAIT_POLL_MS)
        waitedMs += WAIT_POLL_MS
      }
      return viewOf(this.#record)
    })
  }

  /** The diff as text; empty when there is none. Only for other objects of this server. */
  diffText(): Promise<Outcome<string>> {
    return this.#run(async ({ diffs }) =>
      this.#record.diffBytes === null ? '' : new Response(await diffs.read()).text(),
    )
  }

  /** Streams events or the diff; see `RunStreamCall`. A request without a call is that of another Worker's `handleWebSocket`. */
  override async fetch(request: Request): Promise<Response> {
    if (!request.headers.has('x-sandwire-call')) return this.handleWebSocket(request)
    const call = parseRunCall(request.headers)
    const outcome = await this.#run((parts) => this.#stream(call, parts))
    if (outcome.ok) return outcome.value
    const error = errorOf(outcome)
    return respondError(error, call.requestId, { [CODE_HEADER]: error.code })
  }

  async #stream(call: RunStreamCall, { diffs, sandbox, lifecycle }: RunParts): Promise<Response> {
    await this.#authorize(call, 'watch')
    if (call.what === 'terminal') {
      const watcher = await this.#addWatcher(call)
      return openRunTerminal({ ...this.#terminalDependencies(call), watcher })
    }
    if (call.what === 'claude') {
      const mayInput = await this.#authorize(call, 'steer').then(
        () => true,
        () => false,
      )
      await this.#audit(this.#record, call)
      const { sleep } = runtimeOf(this.env)
      return openClaudeStream(call, { store: this.#store, sandbox, mayInput, sleep })
    }
    if (call.what === 'events')
      return streamEvents(call, {
        store: this.#store,
        sandbox,
        lifecycle,
        addWatcher: () => this.#addWatcher(call),
        sleep: runtimeOf(this.env).sleep,
      })
    const { diffBytes, state } = this.#record
    if (state.kind !== 'ended')
      throw new SandwireError('run_not_started', 'The run has no diff yet: it has not ended')
    if (diffBytes === null) throw new SandwireError('not_found', 'The run has no diff')
    return new Response(await diffs.read(), {
      headers: {
        'content-type': 'text/x-diff; charset=utf-8',
        'content-length': String(diffBytes),
        'content-disposition': 'attachment; filename="changes.diff"',
      },
    })
  }

  /** Counts a stream that stays open; throws `too_many_attachments` when there are too many. */
  async #addWatcher(call: SandboxCall): Promise<Watcher> {
    const { identity, login, token, issuedMs } = call
    const account = this.env.ACCOUNT.get(this.env.ACCOUNT.idFromName(identity))
    // Once it has ended, it cannot be told from a sign-in that was never stored.
    const hasStoredSignIn = login !== undefined && unwrap(await account.hasSignIn(login))
    const count = this.#watchers.get(identity) ?? 0
    if (count >= MAX_WATCHERS)
      throw new SandwireError('too_many_attachments', 'Too many of your clients watch the run')
    this.#watchers.set(identity, count + 1)
    return {
      recheck: async () => {
        await this.#authorize(call, 'watch')
        if (login === undefined) return
        const credential = {
          login,
          hasStoredSignIn,
          ...(token === undefined ? {} : { token }),
          ...(issuedMs === undefined ? {} : { issuedMs }),
        }
        if (!unwrap(await account.acceptsConnection(credential))) throw signInEnded()
      },
      end: () => {
        const left = (this.#watchers.get(identity) ?? 1) - 1
        if (left > 0) this.#watchers.set(identity, left)
        else this.#watchers.delete(identity)
      },
    }
  }

  #terminalDependencies(call: SandboxCall) {
    const { sleep, nowMs } = runtimeOf(this.env)
    const steering = (): SandboxCall => ({ ...call, action: 'run.steer', requestId: crypto.randomUUID() })
    return {
      store: this.#store,
      limit: this.#typing,
      account: call.identity,
      sleep,
      nowMs,
      refresh: async () => unwrap(await this.#run(({ lifecycle }) => lifecycle.refresh())),
      send: async (text: string) =>
        void unwrap(await this.sendMessage(steering(), { id: crypto.randomUUID(), text })),
      interrupt: async () => void unwrap(await this.interrupt(steering())),
      hold: (work: Promise<unknown>) => this.ctx.waitUntil(work),
    }
  }

  /** Starts a run for another Worker; returns its id. */
  startSession(options: ExecuteOptions): Promise<string> {
    return this.#binding.startSession(options)
  }

  /** Runs a task to its end; returns the diff. Repeating the call on the same object returns the same run. */
  execute(options: ExecuteOptions): Promise<ExecuteResult> {
    return this.#binding.execute(options)
  }

  /** Answers a question about a repository. */
  research(options: ExecuteOptions): Promise<ResearchResult> {
    return this.#binding.research(options)
  }

  /** Reviews a diff or a ref. */
  review(options: ReviewOptions): Promise<ReviewResult> {
    return this.#binding.review(options)
  }

  sendFeedback(sessionId: string, message: string): Promise<void> {
    return this.#binding.sendFeedback(sessionId, message)
  }

  abort(sessionId: string): Promise<void> {
    return this.#binding.abort(sessionId)
  }

  /**
   * Shows the run as terminal text and takes typed lines as messages. The run is this object, or the last segment of the path.
   * Other Workers send the request with `fetch`: a method call cannot return a WebSocket.
   */
  async handleWebSocket(request: Request): Promise<Response> {
    return this.#binding.handleWebSocket(request, this.#store.read()?.id)
  }

  get #binding(): BindingMethods {
    return openBindingMethods(this.env, this.ctx.id.toString())
  }

  /** Moves the run on; the alarm repeats until it has ended, and finally deletes it. */
  override async alarm(): Promise<void> {
    const record = this.#store.read()
    if (record === undefined) return
    const { config } = runtimeOf(this.env)
    const { state } = record
    if (record.restore !== undefined && record.restore !== null) await this.#run(() => this.#restore())
    if (state.kind === 'ended' && Date.now() >= state.endedMs + config.runs.keepDays * DAY_MS) {
      unwrap(await this.#run(() => this.#delete()))
      return
    }
    unwrap(
      await this.#run(async ({ lifecycle }) => {
        if (isSteerable(state) && (await hasLostAccess(this.env, record)))
          await lifecycle.stop('aborted', LOST_ACCESS)
        await lifecycle.advance()
      }),
    )
    const after = this.#store.read()?.state
    if (after?.kind === 'ended') await this.#alarm.setAt(after.endedMs + config.runs.keepDays * DAY_MS)
  }

  async #delete(): Promise<void> {
    const { diffs, packs, grants, sandbox } = await this.#openParts()
    const { id, owner } = this.#record
    await sandbox.releaseVersions()
    await diffs.delete()
    await packs.delete()
    await grants.remove(id).catch(() => undefined)
    unwrap(await this.env.ACCOUNT.get(this.env.ACCOUNT.idFromName(owner)).removeRun(id))
    await this.ctx.storage.deleteAlarm()
    await this.ctx.storage.deleteAll()
    this.#store.forget()
  }

  #advanceSoon(): void {
    this.ctx.waitUntil(this.#run(({ lifecycle }) => lifecycle.advance()))
  }

  /** Passes a request to a working agent, and reads its state afterwards. */
  #steer<T>(call: SandboxCall, send: (parts: RunParts) => Promise<unknown>): Promise<Outcome<T>> {
    return this.#run(async (parts) => {
      await this.#authorize(call, 'steer')
      const { state } = this.#record
      if (state.kind === 'queued' || state.kind === 'preparing')
        throw new SandwireError('run_not_started', 'The run has not started yet')
      if (!isSteerable(state)) throw new SandwireError('run_ended', 'The run is ending or has ended')
      await this.#audit(this.#record, call)
      const sent = await send(parts)
      this.#advanceSoon()
      return sent as T
    })
  }

  get #record(): RunRecord {
    const record = this.#store.read()
    if (record === undefined) throw noSuchRun()
    return record
  }

  #authorize(call: SandboxCall, need: AgentNeed): Promise<void> {
    return authorizeAgent(this.env, this.#record, call, { need, notFound: noSuchRun })
  }

  #audit(record: RunRecord, call: SandboxCall): Promise<void> {
    return auditAgentCall(this.env, record, call, Date.now())
  }

  #openParts(): Promise<RunParts> {
    this.#parts ??= openRunParts({
      env: this.env,
      store: this.#store,
      wakeAt: (atMs) => this.#alarm.setBy(atMs),
    })
    return this.#parts
  }

  #run<T>(run: (parts: RunParts) => T | Promise<T>): Promise<Outcome<T>> {
    const { log } = runtimeOf(this.env)
    return settle(
      async () => run(await this.#openParts()),
      (cause) => log.error('run_error', { cause: String(cause) }),
    )
  }
}
