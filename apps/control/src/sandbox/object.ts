import { DurableObject } from 'cloudflare:workers'
import type { ErrorCode } from '@sandwire/protocol'
import type { Env } from '../env.ts'
import { CODE_HEADER, respondError } from '../http/respond.ts'
import { errorOf, type Outcome, settle, unwrap } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import type { Need } from './access.ts'
import { ringAlarm } from './alarm.ts'
import type { Deed } from './audit-trail.ts'
import type { AttachCall, SandboxCall } from './call.ts'
import { type About, commandOf, deedOf } from './deeds.ts'
import type { GrantRecord, HeldGrant } from './grants.ts'
import type { Allowed } from './life.ts'
import { openParts, type SandboxParts } from './parts.ts'
import { callOfHeader, hangUp, passThrough } from './pass-through.ts'
import type { SandboxRecord, SandboxView } from './record.ts'
import type { SessionFacts } from './session-view.ts'
import type { ExecResult, OutputPart, ProcessRequest, StartOptions } from './sessions.ts'
import type { GrantRequest, TakenTicket } from './sharing.ts'
import { SandboxStore } from './store.ts'
import type { TicketRequest } from './tickets.ts'
import { UploadAudit } from '../workspace-proxy/upload-audit.ts'
import { WORKSPACE_URL, parseWorkspaceCall } from '../workspace-proxy/call.ts'

/** One sandbox: who owns it, where it is in its life, and the way into it. */
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
    return this.#run(async ({ life, trail }) => {
      const isNew = this.#store.read() === undefined
      const view = await life.create(record)
      const scene = trail.look(call)
      if (isNew && scene !== undefined) await trail.write(call, { action: 'sandbox.create' }, scene)
      return view
    })
  }

  describe(call: SandboxCall): Promise<Outcome<SandboxView>> {
    return this.#act(call, 'see', async ({ life }, { record }) => {
      if (record.state.is === 'running') await life.observe(call.requestId)
    })
  }

  /** The sandbox as last known, for lists. */
  glance(call: SandboxCall): Promise<Outcome<SandboxView>> {
    return this.#run(({ life }) => life.show(life.allow(call, 'see')))
  }

  start(call: SandboxCall): Promise<Outcome<SandboxView>> {
    return this.#act(call, 'work', ({ life }) => life.start(call.requestId))
  }

  stop(call: SandboxCall, discard: boolean): Promise<Outcome<SandboxView>> {
    return this.#act(call, 'own', ({ life }) => life.stop(call.requestId, discard))
  }

  destroy(call: SandboxCall, sandbox: string): Promise<Outcome<void>> {
    return this.#asked(call, {}, async ({ life, trail }) => {
      const scene = trail.look(call)
      await life.allowDestroy(call, sandbox)
      return life.destroy(call, sandbox, () => trail.sayLast(call, scene))
    })
  }

  /** Stored now, given to processes from the next start on. */
  setEnvVars(call: SandboxCall, env: Readonly<Record<string, string>>): Promise<Outcome<SandboxView>> {
    return this.#act(call, 'own', ({ life }, { record }) => {
      this.#store.setSettings({ ...record.settings, env })
      return life.publish()
    })
  }

  logs(call: SandboxCall, maxBytes: number): Promise<Outcome<string>> {
    return this.#asked(call, {}, ({ life, provider }) =>
      provider.logs(life.allow(call, 'work').record.id, maxBytes, call.requestId),
    )
  }

  startProcess(
    call: SandboxCall,
    session: string,
    request: ProcessRequest,
    start: StartOptions,
  ): Promise<Outcome<SessionFacts>> {
    return this.#asked(call, { session, ...commandOf(request) }, ({ sessions }) =>
      sessions.startProcess(call, session, request, start),
    )
  }

  exec(
    call: SandboxCall,
    session: string,
    request: ProcessRequest,
    timeoutMs: number,
  ): Promise<Outcome<ExecResult>> {
    return this.#asked(call, { session, ...commandOf(request) }, ({ sessions }, noteDone) =>
      sessions.exec(call, session, request, timeoutMs, noteDone),
    )
  }

  /** Reads what runs now and brings the account's index up to date; wakes nothing. */
  refreshSessions(call: SandboxCall): Promise<Outcome<readonly SessionFacts[]>> {
    return this.#run(({ life, sessions }) => {
      const options = { need: 'see', mayStart: false, isIdempotent: true } as const
      return sessions.reach(call, options, (running) => life.readActivity(running, call.requestId))
    })
  }

  showSession(call: SandboxCall, session: string): Promise<Outcome<SessionFacts>> {
    return this.#run(({ sessions }) => sessions.showPinned(call, session))
  }

  endSession(call: SandboxCall, session: string): Promise<Outcome<SessionFacts>> {
    return this.#asked(call, { session }, ({ sessions }) => sessions.end(call, session))
  }

  /** Marks a session as one to keep the sandbox awake for, or no longer. */
  pinSession(call: SandboxCall, session: string, pinned: boolean): Promise<Outcome<void>> {
    return this.#asked(call, { session }, ({ sessions }) => sessions.pin(call, session, pinned))
  }

  sessionOutput(call: SandboxCall, session: string, from: number): Promise<Outcome<OutputPart>> {
    return this.#asked(call, { session }, ({ sessions }) => sessions.output(call, session, from))
  }

  grant(call: SandboxCall, request: GrantRequest): Promise<Outcome<GrantRecord>> {
    const { session } = request
    return this.#asked(
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

  revokeGrant(call: SandboxCall, grant: string): Promise<Outcome<void>> {
    return this.#asked(call, { grant }, ({ sharing }) => sharing.revoke(call, grant))
  }

  /** Gives up what the caller holds. */
  leaveGrant(call: SandboxCall, grant: string): Promise<Outcome<void>> {
    return this.#asked(call, { grant }, ({ sharing }) => sharing.leave(call, grant))
  }

  redeemGrant(call: SandboxCall, grant: string, secretHash: string): Promise<Outcome<HeldGrant>> {
    const redeemer = { account: call.identity, name: call.name }
    let wasHeld = false
    return this.#asked(
      call,
      (held) => ({ session: held?.session, grant, hasChanged: !wasHeld }),
      ({ sharing }) => {
        wasHeld = sharing.held(call.identity, grant) !== undefined
        return sharing.redeem(redeemer, grant, secretHash)
      },
    )
  }

  /** A grant as its holder may know it; null when they do not hold it any more. */
  heldGrant(account: string, grant: string): Promise<Outcome<HeldGrant | null>> {
    return this.#run(({ sharing }) => sharing.held(account, grant) ?? null)
  }

  issueTicket(call: SandboxCall, request: TicketRequest): Promise<Outcome<number>> {
    return this.#asked(call, { session: request.session }, ({ sharing }) =>
      sharing.issueTicket(call, request),
    )
  }

  takeTicket(hash: string, origin: string | null): Promise<Outcome<TakenTicket | null>> {
    return this.#run(({ sharing }) => sharing.takeTicket(hash, origin) ?? null)
  }

  /** A sign-in has ended: connections that hang on it are cut. */
  endLogin(login: string, endedMs: number): Promise<Outcome<void>> {
    return this.#run(({ cutting }) => cutting.endLogin(login, endedMs))
  }

  /** Connections that hang on a sign-in are cut, though it goes on. */
  cutLogin(login: string): Promise<Outcome<void>> {
    return this.#run(({ cutting }) => cutting.cutLogin(login))
  }

  /** An account is gone: what it was given here is taken back, and its connections are cut. */
  leave(account: string): Promise<Outcome<void>> {
    return this.#run(({ cutting }) => cutting.leave(account))
  }

  /** Its owner's account is gone: nobody may be here any more. Answers as soon as that is certain. */
  evict(owner: string): Promise<Outcome<void>> {
    return this.#run(async ({ cutting }) => {
      if (this.#store.read()?.owner === owner) await cutting.cutAll(owner)
    })
  }

  /** The same, and everything of it is removed. */
  abandon(owner: string, sandbox: string): Promise<Outcome<void>> {
    return this.#run(async ({ life, trail, cutting }) => {
      const requestId = crypto.randomUUID()
      const call = { identity: owner, name: '', scopes: [], address: '', requestId }
      if (this.#store.read() !== undefined) life.allow(call, 'own')
      // Also where what makes sandboxes does not answer for now.
      this.ctx.waitUntil(cutting.cutAll(owner))
      const scene = trail.look(call)
      await life.destroy(call, sandbox, () => trail.sayLast(call, scene))
    })
  }

  /** The way in: an upgrade with an attach call, answered by sandboxd's 101, or a request about files; or an error. */
  override fetch(request: Request): Promise<Response> {
    return request.url === WORKSPACE_URL ? this.#passFiles(request) : this.wsConnect(request)
  }

  async #passFiles(request: Request): Promise<Response> {
    const call = this.#uploadAudit.withoutRepeatedAction(parseWorkspaceCall(request.headers))
    const outcome = await this.#asked<Response>(
      call,
      (answer) => ({ hasChanged: answer === undefined || answer.ok }),
      ({ workspace }) => workspace.handle(call, request),
    )
    if (outcome.ok && outcome.value.ok) this.#uploadAudit.succeeded(call)
    if (outcome.ok) return outcome.value
    // An answer to HEAD has no body that could say it.
    const error = errorOf(outcome)
    return respondError(error, call.requestId, { [CODE_HEADER]: error.code })
  }

  async wsConnect(request: Request): Promise<Response> {
    const call = callOfHeader(request.headers)
    const { compat } = call
    const enter = async (entering: AttachCall): Promise<Response> => unwrap(await this.#enter(entering))
    const outcome =
      compat === undefined
        ? await this.#enter(call)
        : await this.#run(({ ptySessions }) => ptySessions.open(call, compat, enter))
    return outcome.ok ? outcome.value : respondError(errorOf(outcome), call.requestId)
  }

  /** Joins or starts, as the call says. */
  #enter(call: AttachCall): Promise<Outcome<Response>> {
    const { joins, isIdempotent } = call
    const options =
      joins === undefined
        ? ({ need: 'work', mayStart: true, isIdempotent } as const)
        : ({ need: 'watch', session: joins, mayStart: false, isIdempotent } as const)
    return this.#asked(call, deedOf(call), ({ sessions, life, cutting, reauthorizing }, noteDone) =>
      sessions.reach(call, options, async ({ address }, sandboxd, caller) => {
        // Joining is no activity: a forgotten tab that reconnects would keep the sandbox awake.
        if (options.mayStart) this.#store.touch(Date.now())
        const stay = await reauthorizing.foresee(call, caller.grant)
        const opened = await passThrough(address, sandboxd, caller, call)
        try {
          reauthorizing.remember(stay)
          // A process that was started has been, also when nobody gets to it.
          if (options.mayStart) await noteDone()
          await cutting.checkAgain(caller, () => life.allow(call, options.need, joins).access)
        } catch (error) {
          hangUp(opened)
          throw error
        }
        return opened
      }),
    )
  }

  /** Writes down a refusal that was decided before this object was asked. */
  noteRefusal(
    call: SandboxCall,
    code: ErrorCode,
    about: Pick<Deed, 'session' | 'command'>,
  ): Promise<Outcome<void>> {
    return this.#run(async ({ trail }) => {
      const scene = trail.look(call)
      if (scene === undefined || call.action === undefined) return
      await trail.write(call, { action: call.action, ...about }, scene, code)
    })
  }

  /** The object's one alarm, which rings while the sandbox runs or something is to be told. */
  override async alarm(): Promise<void> {
    const store = this.#store
    const hold = (work: Promise<unknown>): void => this.ctx.waitUntil(work)
    const mintRequestId = (): string => crypto.randomUUID()
    unwrap(await this.#run((parts) => ringAlarm({ ...parts, store, hold, mintRequestId })))
  }

  /** Does something with a sandbox that the caller may do that to, and shows how it is then. */
  #act(
    call: SandboxCall,
    need: Need,
    act: (parts: SandboxParts, allowed: Allowed) => Promise<void>,
  ): Promise<Outcome<SandboxView>> {
    return this.#asked(call, {}, async (parts, noteDone) => {
      const { life } = parts
      await act(parts, life.allow(call, need))
      await noteDone()
      return life.show(life.allow(call, need))
    })
  }

  /** Does what somebody asked for and, when that has a name in the audit, writes down what came of it. */
  #asked<T>(
    call: SandboxCall,
    about: About<T>,
    run: (parts: SandboxParts, noteDone: () => Promise<void>) => T | Promise<T>,
  ): Promise<Outcome<T>> {
    return this.#run((parts) => parts.trail.watch(call, about, (noteDone) => run(parts, noteDone)))
  }

  #run<T>(run: (parts: SandboxParts) => T | Promise<T>): Promise<Outcome<T>> {
    const { log } = runtimeOf(this.env)
    this.#parts ??= openParts(this.ctx, this.env, this.#store)
    const parts = this.#parts
    return settle(
      async () => run(await parts),
      (cause) => log.error('sandbox_fault', { cause: String(cause) }),
    )
  }
}
