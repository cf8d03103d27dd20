import { DurableObject } from 'cloudflare:workers'
import type { ErrorCode } from '@sandwire/protocol'
import type { Env } from '../env.ts'
import { auditedHeader, CODE_HEADER, respondError } from '../http/respond.ts'
import { errorOf, type Outcome, settle, unwrap } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import type { Access, Need } from './access.ts'
import { AGENTS_URL, parseAgentCall } from './agents.ts'
import { onAlarm } from './alarm.ts'
import { attachEvent, type AuditEvent, commandOf, type EventDetails } from './audit-log.ts'
import type { AttachCall, SandboxCall } from './call.ts'
import type { GrantRecord, HeldGrant } from './grants.ts'
import type { Authorized } from './lifecycle.ts'
import { openParts, type SandboxParts } from './parts.ts'
import { openConnection } from './open-connection.ts'
import { callOfHeader, closeSocket } from './pass-through.ts'
import { type Hold, holdVersion } from './hold-version.ts'
import type { SandboxRecord, SandboxSettings, SandboxView } from './record.ts'
import { restoreVersion, restoreWorkspace, type WorkspaceRestore } from './restore-version.ts'
import type { RevocationEvent } from './revocation.ts'
import type { SessionFacts } from './session-view.ts'
import type { ExecResult, OutputPart, ProcessRequest, StartOptions } from './sessions.ts'
import type { GrantRequest, TakenTicket } from './sharing.ts'
import { type DroppedRows, SandboxStore } from './store.ts'
import type { TicketRequest } from './tickets.ts'
import { UploadAudit } from '../workspace-proxy/upload-audit.ts'
import { WORKSPACE_URL, parseWorkspaceCall } from '../workspace-proxy/call.ts'
import type { Held } from '../run/turns.ts'
import type { RetentionSettings } from '../versions/retention.ts'
import type { ListedVersion, VersionContent, VersionList } from '../versions/version-store.ts'

/** One sandbox: its owner, lifecycle, grants and sessions. Every request to it goes through here. */
export class SandboxObject extends DurableObject<Env> {
  readonly #store: SandboxStore
  readonly #uploadAudit = new UploadAudit()
  #parts: Promise<SandboxParts> | undefined

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#store = new SandboxStore(ctx.storage.sql)
    runtimeOf(env).metrics.count('sandwire_objects_constructed_total', { class: 'sandbox' })
  }

  create(
    record: Pick<SandboxRecord, 'id' | 'owner' | 'name' | 'settings'>,
    call: SandboxCall,
  ): Promise<Outcome<SandboxView>> {
    return this.#run(async ({ lifecycle, audit }) => {
      const isNew = this.#store.read() === undefined
      const view = await lifecycle.create(record)
      const context = audit.contextOf(call)
      if (isNew && context !== undefined) await audit.record(call, { action: 'sandbox.create' }, context)
      return view
    })
  }

  describe(call: SandboxCall): Promise<Outcome<SandboxView>> {
    return this.#operate(call, 'see', ({ lifecycle }) => lifecycle.refresh(call.requestId))
  }

  /** The sandbox as last reported, without a request to the provider; for lists. */
  lastKnown(call: SandboxCall): Promise<Outcome<SandboxView>> {
    return this.#run(({ lifecycle }) => lifecycle.show(lifecycle.authorize(call, 'see')))
  }

  /** True when the sandbox runs at this address of the provider, as last reported. */
  isRunningAt(address: string): boolean {
    const state = this.#store.read()?.state
    return state?.kind === 'running' && state.address === address
  }

  start(call: SandboxCall): Promise<Outcome<SandboxView>> {
    return this.#operate(call, 'work', ({ lifecycle }) => lifecycle.startObserved(call.requestId))
  }

  stop(call: SandboxCall, discard: boolean): Promise<Outcome<SandboxView>> {
    return this.#operate(call, 'own', ({ lifecycle }) => lifecycle.stop(call.requestId, discard))
  }

  destroy(call: SandboxCall, sandbox: string): Promise<Outcome<void>> {
    return this.#audited(call, {}, async ({ lifecycle }) => {
      await lifecycle.authorizeDestroy(call, sandbox)
      return lifecycle.destroy(call, sandbox)
    })
  }

  /** Takes effect at the next start. */
  setEnvVars(call: SandboxCall, env: Readonly<Record<string, string>>): Promise<Outcome<SandboxView>> {
    return this.#operate(call, 'own', ({ lifecycle }, { record }) => {
      this.#store.setSettings({ ...record.settings, env })
      return lifecycle.publish()
    })
  }

  /** Saved versions of its files, newest first, and which are kept. */
  versions(call: SandboxCall): Promise<Outcome<VersionList>> {
    return this.#run(async ({ lifecycle, files, provider: { checkpoints }, refreshRetention }) => {
      const { record } = lifecycle.authorize(call, 'work')
      if (checkpoints !== undefined && !files.isEnabled)
        return { ...files.describe(), versions: await checkpoints.list(record.id) }
      await refreshRetention()
      return files.describe()
    })
  }

  /** Sets which versions are kept; what is not given is inherited from the account. */
  setRetention(call: SandboxCall, settings: RetentionSettings): Promise<Outcome<VersionList>> {
    return this.#audited(call, {}, async ({ lifecycle, files, refreshRetention, rearm }) => {
      lifecycle.authorize(call, 'own')
      await refreshRetention()
      files.setRetention(settings)
      await rearm()
      return files.describe()
    })
  }

  /** Saves the files and keeps the version until it is deleted. Starts a stopped sandbox. */
  checkpoint(call: SandboxCall, name: string | undefined): Promise<Outcome<ListedVersion>> {
    return this.#audited(call, {}, async ({ lifecycle, files, provider: { checkpoints } }) => {
      const { record } = lifecycle.authorize(call, 'work')
      if (checkpoints !== undefined && !files.isEnabled) return checkpoints.create(record.id, name)
      files.checkName(name)
      await lifecycle.start(call.requestId)
      const { requestId } = call
      const named = name === undefined ? {} : { name }
      return files.describeOne(
        await files.save({ pause: 'checkpoint', kind: 'checkpoint', requestId, ...named }),
      )
    })
  }

  removeVersion(call: SandboxCall, nameOrNumber: string): Promise<Outcome<void>> {
    return this.#audited(call, {}, async ({ lifecycle, files, rearm }) => {
      lifecycle.authorize(call, 'own')
      files.remove(nameOrNumber)
      await rearm()
    })
  }

  /** Replaces the files by a version; see `restoreVersion`. */
  restoreVersion(call: SandboxCall, nameOrNumber: string): Promise<Outcome<SandboxView>> {
    return this.#operate(call, 'own', (parts) => restoreVersion(parts, nameOrNumber, call.requestId))
  }

  /** Keeps the files as they are for a message; see `holdVersion`. Only for other objects of this server. */
  holdVersion(hold: Hold): Promise<Outcome<Held>> {
    return this.#run((parts) => holdVersion(parts, hold))
  }

  /** Restores the workspace for a conversation or run, by request of the owner; see `restoreWorkspace`. */
  restoreWorkspace(by: string, restore: WorkspaceRestore): Promise<Outcome<number>> {
    return this.#run((parts) => restoreWorkspace(parts, by, restore))
  }

  /** A version, by default the newest, with what is needed to read it from the store. */
  versionContent(call: SandboxCall, nameOrNumber: string | undefined): Promise<Outcome<VersionContent>> {
    return this.#run(({ lifecycle, files }) => {
      lifecycle.authorize(call, 'work')
      return files.content(nameOrNumber)
    })
  }

  /** Adds versions that are in the store and not in the list. */
  rebuildVersions(call: SandboxCall): Promise<Outcome<VersionList>> {
    return this.#audited(call, {}, async ({ lifecycle, files, rearm }) => {
      await files.rebuild(lifecycle.authorize(call, 'own').record.id)
      await rearm()
      return files.describe()
    })
  }

  /** Settings for a sandbox that is made from a version. */
  forkSettings(call: SandboxCall, nameOrNumber: string): Promise<Outcome<SandboxSettings>> {
    return this.#run(({ lifecycle, files }) => {
      const { record } = lifecycle.authorize(call, 'own')
      files.find(nameOrNumber)
      return record.settings
    })
  }

  /** Keeps the segments of a version for the sandbox `fork`. */
  addFork(call: SandboxCall, nameOrNumber: string, fork: string): Promise<Outcome<VersionContent>> {
    return this.#audited(call, {}, async ({ lifecycle, files, rearm }) => {
      const { id } = lifecycle.authorize(call, 'own').record
      const content = await files.addFork(id, nameOrNumber, fork)
      await rearm()
      return content
    })
  }

  /** Makes a version of another sandbox the files of this new one. */
  adoptFork(call: SandboxCall, content: VersionContent): Promise<Outcome<void>> {
    return this.#run(({ lifecycle, files }) => {
      lifecycle.authorize(call, 'own')
      files.adoptFork(content)
    })
  }

  /** True when the sandbox, which was made from a version of another, still needs segments that it did not make. */
  needsForeignSegments(sandbox: string): Promise<Outcome<boolean>> {
    return this.#run(() => this.#store.versions.hasForeignSegments(sandbox))
  }

  /** Server-sent events about its files. */
  statusEvents(call: SandboxCall): Promise<Outcome<ReadableStream<Uint8Array>>> {
    return this.#run(({ lifecycle, openStatus }) => {
      const { grant } = lifecycle.authorize(call, 'see').access
      return openStatus({ ...call, ...(grant === undefined ? {} : { grant }) })
    })
  }

  logs(call: SandboxCall, maxBytes: number): Promise<Outcome<string>> {
    return this.#audited(call, {}, ({ lifecycle, provider }) =>
      provider.logs(lifecycle.authorize(call, 'work').record.id, maxBytes, call.requestId),
    )
  }

  startProcess(
    call: SandboxCall,
    session: string,
    request: ProcessRequest,
    start: StartOptions,
  ): Promise<Outcome<SessionFacts>> {
    return this.#audited(call, { session, ...commandOf(request) }, ({ sessions }) =>
      sessions.startProcess(call, session, request, start),
    )
  }

  exec(
    call: SandboxCall,
    session: string,
    request: ProcessRequest,
    timeoutMs: number,
  ): Promise<Outcome<ExecResult>> {
    return this.#audited(call, { session, ...commandOf(request) }, ({ sessions }, recordDone) =>
      sessions.exec(call, session, request, timeoutMs, recordDone),
    )
  }

  /** Lists the sessions and updates the account's index; does not start a stopped sandbox. */
  refreshSessions(call: SandboxCall): Promise<Outcome<readonly SessionFacts[]>> {
    return this.#run(({ lifecycle, sessions }) => {
      const options = { need: 'see', mayStart: false, isIdempotent: true } as const
      return sessions.reach(call, options, (running) => lifecycle.readActivity(running, call.requestId))
    })
  }

  showSession(call: SandboxCall, session: string): Promise<Outcome<SessionFacts>> {
    return this.#run(({ sessions }) => sessions.showPinned(call, session))
  }

  endSession(call: SandboxCall, session: string): Promise<Outcome<SessionFacts>> {
    return this.#audited(call, { session }, ({ sessions }) => sessions.end(call, session))
  }

  /** Sets whether a session keeps the sandbox from stopping when idle. */
  pinSession(call: SandboxCall, session: string, pinned: boolean): Promise<Outcome<void>> {
    return this.#audited(call, { session }, ({ sessions }) => sessions.pin(call, session, pinned))
  }

  /** The caller's access to a run in this sandbox; throws `sandbox_not_found` without any. Null: there is no sandbox. */
  accessToRun(call: SandboxCall, run: string): Promise<Outcome<Access | null>> {
    return this.#run(({ lifecycle }) =>
      this.#store.read() === undefined ? null : lifecycle.authorize(call, 'watch', run).access,
    )
  }

  /** The run of an account's own name for a session of `/ws/claude-stream`; set if one is given. Null: none. */
  claudeSession(account: string, alias: string, run?: string): Promise<Outcome<string | null>> {
    return this.#run(({ agents }) => agents.claudeSession(account, alias, run))
  }

  /** Keeps the sandbox from stopping when idle while an agent works in it. `gone`: the run or conversation is deleted. */
  setRunActive(run: string, state: 'working' | 'resting' | 'gone'): Promise<Outcome<void>> {
    return this.#run(({ agents }) => agents.setActive(run, state))
  }

  sessionOutput(call: SandboxCall, session: string, from: number): Promise<Outcome<OutputPart>> {
    return this.#audited(call, { session }, ({ sessions }) => sessions.output(call, session, from))
  }

  grant(call: SandboxCall, request: GrantRequest): Promise<Outcome<GrantRecord>> {
    const { session } = request
    return this.#audited(
      call,
      (made) => ({ session, grant: made?.id }),
      async ({ sharing, rearm }) => {
        const made = await sharing.grant(call, request)
        await rearm()
        return made
      },
    )
  }

  grants(call: SandboxCall): Promise<Outcome<readonly GrantRecord[]>> {
    return this.#run(({ sharing }) => sharing.grants(call))
  }

  revokeGrant(call: SandboxCall, grant: string, endsSessions = false): Promise<Outcome<void>> {
    return this.#audited(call, { grant }, ({ sharing }) => sharing.revoke(call, grant, endsSessions))
  }

  /** Removes a grant that the caller holds. */
  leaveGrant(call: SandboxCall, grant: string): Promise<Outcome<void>> {
    return this.#audited(call, { grant }, ({ sharing }) => sharing.leave(call, grant))
  }

  redeemGrant(call: SandboxCall, grant: string, secretHash: string): Promise<Outcome<HeldGrant>> {
    const redeemer = { account: call.identity, name: call.name }
    let wasHeld = false
    return this.#audited(
      call,
      (held) => ({ session: held?.session, grant, hasChanged: !wasHeld }),
      ({ sharing }) => {
        wasHeld = sharing.held(call.identity, grant) !== undefined
        return sharing.redeem(redeemer, grant, secretHash)
      },
    )
  }

  /** A grant as its holder sees it; null when the account does not hold it. */
  heldGrant(account: string, grant: string): Promise<Outcome<HeldGrant | null>> {
    return this.#run(({ sharing }) => sharing.held(account, grant) ?? null)
  }

  issueTicket(call: SandboxCall, request: TicketRequest): Promise<Outcome<number>> {
    return this.#audited(call, { session: request.session }, ({ sharing }) =>
      sharing.issueTicket(call, request),
    )
  }

  takeTicket(hash: string, origin: string | null): Promise<Outcome<TakenTicket | null>> {
    return this.#run(({ sharing }) => sharing.takeTicket(hash, origin) ?? null)
  }

  /** Applies what ended in an account. Returns as soon as it is stored; its connections are closed from then on. */
  revoke(event: RevocationEvent): Promise<Outcome<void>> {
    return this.#run(({ revocation }) => revocation.handle(event))
  }

  /** Destroys the sandbox of a deleted account. */
  destroyOrphaned(owner: string, sandbox: string): Promise<Outcome<void>> {
    return this.#run(async ({ lifecycle, revocation }) => {
      const requestId = crypto.randomUUID()
      const call = { identity: owner, name: '', scopes: [], address: '', requestId }
      if (this.#store.read() !== undefined) lifecycle.authorize(call, 'own')
      // Connections are closed even if the provider does not respond.
      this.ctx.waitUntil(revocation.handle({ type: 'owner_deleted', account: owner }))
      await lifecycle.destroy(call, sandbox)
    })
  }

  /** Handles an attach (an upgrade, answered by sandboxd's 101), a file request or a request of a run. */
  override fetch(request: Request): Promise<Response> {
    if (request.url === AGENTS_URL) return this.#proxyAgent(request)
    return request.url === WORKSPACE_URL ? this.#proxyFiles(request) : this.#attach(request)
  }

  async #proxyAgent(request: Request): Promise<Response> {
    const call = parseAgentCall(request.headers)
    const body = call.method === 'GET' ? undefined : await request.text()
    const outcome = await this.#run(({ agents }) => agents.handle(call, body === '' ? undefined : body))
    if (outcome.ok) return outcome.value
    const error = errorOf(outcome)
    return respondError(error, call.requestId, { [CODE_HEADER]: error.code })
  }

  async #proxyFiles(request: Request): Promise<Response> {
    const call = this.#uploadAudit.withoutRepeatedAction(parseWorkspaceCall(request.headers))
    const outcome = await this.#audited<Response>(
      call,
      (response) => ({ hasChanged: response === undefined || response.ok }),
      ({ workspace }) => workspace.handle(call, request),
    )
    if (outcome.ok && outcome.value.ok) this.#uploadAudit.succeeded(call)
    if (outcome.ok) return outcome.value
    // A response to HEAD has no body for the code.
    const error = errorOf(outcome)
    return respondError(error, call.requestId, { [CODE_HEADER]: error.code, ...auditedHeader(outcome) })
  }

  async #attach(request: Request): Promise<Response> {
    const call = callOfHeader(request.headers)
    const { compat } = call
    const attach = async (resolved: AttachCall): Promise<Response> =>
      unwrap(await this.#joinOrStart(resolved))
    const outcome =
      compat === undefined || compat.kind === 'text'
        ? await this.#joinOrStart(call)
        : await this.#run(({ compatSessions }) => compatSessions.open(call, compat, attach))
    return outcome.ok ? outcome.value : respondError(errorOf(outcome), call.requestId, auditedHeader(outcome))
  }

  #joinOrStart(call: AttachCall): Promise<Outcome<Response>> {
    const { joins, isIdempotent } = call
    const options =
      joins === undefined
        ? ({ need: 'work', mayStart: true, isIdempotent } as const)
        : ({ need: 'watch', session: joins, mayStart: false, isIdempotent } as const)
    return this.#audited(
      call,
      attachEvent(call),
      ({ sessions, lifecycle, provider: { execSessions }, revocation, recheck }, recordDone) =>
        sessions.reach(call, options, async ({ address }, sandboxd, caller) => {
          // Joining is not activity: a forgotten tab that reconnects would keep the sandbox running.
          if (options.mayStart) {
            await lifecycle.admitSession(call.session)
            this.#store.touch(Date.now())
          }
          const connection = await recheck.prepare(call, caller.grant)
          const target = { address, sandboxd, execSessions, lifecycle }
          const opened = await openConnection(this.env, target, caller, call)
          try {
            recheck.add(connection)
            // The process was started even if the connection fails now.
            if (options.mayStart) await recordDone()
            await revocation.recheckAttach(
              caller,
              () => lifecycle.authorize(call, options.need, joins).access,
            )
          } catch (error) {
            closeSocket(opened)
            throw error
          }
          return opened
        }),
    )
  }

  /** Records a refusal that the Worker decided on. */
  recordRefusal(
    call: SandboxCall,
    code: ErrorCode,
    details: Pick<AuditEvent, 'session' | 'command'>,
  ): Promise<Outcome<void>> {
    return this.#run(async ({ audit }) => {
      const context = audit.contextOf(call)
      if (context === undefined || call.action === undefined) return
      await audit.record(call, { action: call.action, ...details }, context, code)
    })
  }

  /** Records that the Worker dropped events of a caller. */
  recordDropped(
    call: SandboxCall,
    dropped: Pick<DroppedRows, 'dropped' | 'sinceMs'>,
  ): Promise<Outcome<void>> {
    return this.#run(({ audit }) => audit.recordDropped(call, dropped))
  }

  /** Fires while the sandbox runs, and when a revocation or an audit entry is pending. */
  override async alarm(): Promise<void> {
    const store = this.#store
    const hold = (work: Promise<unknown>): void => this.ctx.waitUntil(work)
    const mintRequestId = (): string => crypto.randomUUID()
    unwrap(await this.#run((parts) => onAlarm({ ...parts, store, hold, mintRequestId })))
  }

  /** Runs an operation on the sandbox for an authorized caller, and returns the sandbox afterwards. */
  #operate(
    call: SandboxCall,
    need: Need,
    operate: (parts: SandboxParts, authorized: Authorized) => Promise<void>,
  ): Promise<Outcome<SandboxView>> {
    return this.#audited(call, {}, async (parts, recordDone) => {
      const { lifecycle } = parts
      await operate(parts, lifecycle.authorize(call, need))
      await recordDone()
      return lifecycle.show(lifecycle.authorize(call, need))
    })
  }

  /** Runs a request and records its outcome in the audit. */
  async #audited<T>(
    call: SandboxCall,
    details: EventDetails<T>,
    run: (parts: SandboxParts, recordDone: () => Promise<void>) => T | Promise<T>,
  ): Promise<Outcome<T>> {
    const outcome = await this.#run((parts) =>
      parts.audit.audited(call, details, (recordDone) => run(parts, recordDone)),
    )
    return outcome.ok ? outcome : { ...outcome, isAudited: true }
  }

  #run<T>(run: (parts: SandboxParts) => T | Promise<T>): Promise<Outcome<T>> {
    const { log } = runtimeOf(this.env)
    this.#parts ??= openParts(this.ctx, this.env, this.#store)
    const parts = this.#parts
    return settle(
      async () => run(await parts),
      (cause) => log.error('sandbox_error', { cause: String(cause) }),
    )
  }
}
