import { DurableObject } from 'cloudflare:workers'
import { SandwireError } from '@sandwire/protocol'
import type { AuditEntry } from '../audit/entry.ts'
import { isTrustedSignIn, type SignIn } from '../auth/browser-sign-in.ts'
import { isGuestLogin, unauthorized } from '../auth/identity.ts'
import type { SandboxRequest } from '../ceilings/check-ceilings.ts'
import type { Env } from '../env.ts'
import { MACHINE } from '../machine/store.ts'
import { type Outcome, settle, unwrap } from '../outcome.ts'
import type { RunObject } from '../run/object.ts'
import type { ConversationView } from '../conversation/view.ts'
import type { RunView } from '../run/view.ts'
import { runtimeOf } from '../runtime.ts'
import { ObjectAlarm } from '../sandbox/alarm.ts'
import type { HeldGrant } from '../sandbox/grants.ts'
import type { LateRefusal } from '../sandbox/late-refusals.ts'
import type { SandboxObject } from '../sandbox/object.ts'
import type { RecheckedConnection } from '../sandbox/recheck-authorization.ts'
import type { SandboxView } from '../sandbox/record.ts'
import type { RevocationEvent } from '../sandbox/revocation.ts'
import type { SessionFacts } from '../sandbox/session-view.ts'
import type { RetentionSettings } from '../versions/retention.ts'
import { type AuditQuery, AuditStore } from './audit-store.ts'
import { type DestroyedLog, DestroyedLogs } from './destroyed-logs.ts'
import { AccountRevocation } from './revocation.ts'
import { EndedTokens, type EndedToken, type IssuedCredential, SignIns, type UsedState } from './sign-ins.ts'
import { AccountConversations } from './conversations.ts'
import { AccountRuns, type RunClaim } from './runs.ts'
import { AccountUsage } from './usage.ts'
import { type BytesByLineage, StoredBytes } from './stored-bytes.ts'
import { AccountStore, AttachBudget, type GrantSource, HeldGrants, type IndexedSession } from './store.ts'

/** Between two steps of a long cleanup of the audit. */
const PRUNE_PAUSE_MS = 1_000
/** How long calls that were authenticated before the account's deletion may still arrive. */
const DELETION_MS = 60_000

/** One account: its sandboxes, an index of their sessions, its sign-ins, the grants that it holds and its audit. */
export class AccountObject extends DurableObject<Env> {
  readonly #store: AccountStore
  readonly #signIns: SignIns
  readonly #endedTokens: EndedTokens
  readonly #heldGrants: HeldGrants
  readonly #attachBudget: AttachBudget
  readonly #audit: AuditStore
  readonly #revocation: AccountRevocation
  readonly #usage: AccountUsage
  readonly #stored: StoredBytes
  readonly #destroyedLogs: DestroyedLogs
  readonly #runs: AccountRuns
  readonly #conversations: AccountConversations

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    const { sql } = ctx.storage
    const { metrics, log, nowMs, ceilings, config } = runtimeOf(env)
    this.#store = new AccountStore(sql)
    const machine = () => env.MACHINE.get(env.MACHINE.idFromName(MACHINE))
    // Unique for the account, without its name.
    const self = ctx.id.toString()
    this.#stored = new StoredBytes(sql, ceilings)
    this.#usage = new AccountUsage({
      store: this.#store,
      stored: this.#stored,
      machine: {
        reserve: async (usage, asked, action) => unwrap(await machine().reserve(self, usage, asked, action)),
        report: async (usage) => unwrap(await machine().report(self, usage)),
      },
      ceilings,
      countsLimits: config.provider === 'host',
      nowMs,
    })
    this.#runs = new AccountRuns(sql, config.runs)
    this.#conversations = new AccountConversations(sql, config.conversations.perAccount)
    this.#destroyedLogs = new DestroyedLogs(sql)
    this.#signIns = new SignIns(sql)
    this.#endedTokens = new EndedTokens(sql)
    this.#heldGrants = new HeldGrants(sql)
    this.#attachBudget = new AttachBudget(sql)
    this.#audit = new AuditStore(sql)
    const alarm = new ObjectAlarm(ctx.storage)
    this.#revocation = new AccountRevocation({
      exec: (query, ...bindings) => sql.exec(query, ...bindings).toArray(),
      report: async (sandbox, event) => unwrap(await this.#sandbox(sandbox).revoke(event)),
      destroy: async (sandbox, account) =>
        unwrap(await this.#sandbox(sandbox).destroyOrphaned(account, sandbox)),
      wakeBy: (atMs) => alarm.setBy(atMs),
      nowMs,
      log,
    })
    metrics.count('sandwire_objects_constructed_total', { class: 'account' })
  }

  /** Reserves a name for a new sandbox. For a name in use, returns the id that has it, with `isNew` false. */
  claim(name: string, id: string, sandbox: SandboxRequest): Promise<Outcome<{ id: string; isNew: boolean }>> {
    return this.#run(() => {
      const known = this.#usage.find(name)
      if (known !== undefined) return { id: known, isNew: false }
      const { hasOneSandbox, defaultName } = runtimeOf(this.env).config
      if (hasOneSandbox && name !== defaultName)
        throw new SandwireError('sandbox_not_found', `This server has one sandbox, "${defaultName}"`)
      this.#refuseDeleted()
      return this.#usage.claim(name, id, sandbox)
    })
  }

  /** Stores that a sandbox is about to start; throws `ceiling_exceeded` when there is no room for it. */
  reserveStart(view: SandboxView): Promise<Outcome<void>> {
    return this.#run(() => this.#usage.reserveStart(view))
  }

  /** Counts a session that is about to start; throws `ceiling_exceeded` at the ceiling. */
  admitSession(session: string): Promise<Outcome<void>> {
    return this.#run(() => this.#usage.admitSession(session))
  }

  /** What the account uses, against its ceilings. */
  usage(): Promise<Outcome<ReturnType<AccountUsage['uses']>>> {
    return this.#run(() => this.#usage.uses())
  }

  find(name: string): Promise<Outcome<string | null>> {
    return this.#run((store) => store.idOf(name) ?? null)
  }

  sandboxes(): Promise<Outcome<readonly { id: string; name: string; view?: SandboxView }[]>> {
    return this.#run((store) => store.sandboxes())
  }

  sessions(): Promise<Outcome<readonly IndexedSession[]>> {
    return this.#run((store) => store.sessions())
  }

  /** Counts bytes that a sandbox is about to store; throws `ceiling_exceeded` at the ceiling. */
  admitStored(sandbox: string, bytes: number): Promise<Outcome<void>> {
    return this.#run(() => this.#stored.admit(sandbox, bytes))
  }

  /** Stores the state of a sandbox; `sessions` replaces its known sessions, `stored` what it has in the store. */
  report(
    view: SandboxView,
    sessions?: readonly SessionFacts[],
    stored?: BytesByLineage,
  ): Promise<Outcome<void>> {
    return this.#run((store) => {
      store.setView(view)
      // A report can arrive after the sandbox was destroyed.
      if (stored !== undefined && store.viewOf(view.id) !== undefined) this.#stored.set(view.id, stored)
      if (sessions !== undefined) store.setSessions(view.id, sessions)
      this.#usage.setKnownSessions((sessions ?? []).map(({ id }) => id))
      this.#reportUsage()
    })
  }

  /** Which versions its sandboxes keep: the settings of the account over those of the operator. */
  retention(): Promise<Outcome<RetentionSettings>> {
    const { config } = runtimeOf(this.env)
    return this.#run((store) => ({ ...config.retention, ...store.retention }))
  }

  setRetention(settings: RetentionSettings): Promise<Outcome<void>> {
    return this.#run((store) => store.setRetention(settings))
  }

  /** Keeps the last lines of a sandbox that is about to be destroyed. */
  keepLog(log: DestroyedLog): Promise<Outcome<void>> {
    return this.#run(() => this.#destroyedLogs.add(log, Date.now()))
  }

  /** The last lines of a destroyed sandbox, by its id or last name; null when they are not kept. */
  destroyedLog(idOrName: string): Promise<Outcome<string | null>> {
    return this.#run(() => this.#destroyedLogs.find(idOrName, Date.now()) ?? null)
  }

  remove(sandbox: string): Promise<Outcome<void>> {
    return this.#run(() => {
      this.#usage.remove(sandbox)
      this.#reportUsage()
    })
  }

  /** Adds a run; returns its id, or that of the run which was created with the same key. */
  claimRun(view: RunView, claim: RunClaim): Promise<Outcome<string>> {
    return this.#run(() => {
      this.#refuseDeleted()
      this.#stored.check(1, 'create the run')
      return this.#runs.claim(view, claim, Date.now())
    })
  }

  /** True when the run may start now. */
  admitRun(run: string): Promise<Outcome<boolean>> {
    return this.#run(() => this.#runs.admit(run))
  }

  /** Stores the state of a run, and what it keeps. When it has ended, the next ones that wait are woken, and old ones deleted. */
  reportRun(view: RunView, storedBytes: number): Promise<Outcome<void>> {
    return this.#run(() => {
      this.#runs.report(view)
      if (view.state !== 'ended') return
      this.#stored.set(view.id, { [view.id]: storedBytes })
      this.#wakeRuns()
      // What cannot be deleted now is when the next run ends.
      for (const run of this.#runs.outdated()) this.ctx.waitUntil(this.#runObject(run).deleteOrphaned())
    })
  }

  /** Runs, newest first, as last reported: a JSON array, because passing a hundred objects to the Worker takes longer than reading them. */
  runs(limit: number, before: string | undefined): Promise<Outcome<string>> {
    return this.#run(() => this.#runs.list(limit, before))
  }

  removeRun(run: string): Promise<Outcome<void>> {
    return this.#run(() => {
      this.#runs.remove(run)
      this.#stored.remove(run)
      this.#wakeRuns()
    })
  }

  /** Adds a conversation; returns its id, or that of the one which the account's client names so. */
  claimConversation(view: ConversationView): Promise<Outcome<string>> {
    return this.#run(() => {
      this.#refuseDeleted()
      return this.#conversations.claim(view)
    })
  }

  /** The conversation that the account's client names so; null: there is none. */
  findConversation(sessionId: string): Promise<Outcome<string | null>> {
    return this.#run(() => this.#conversations.find(sessionId) ?? null)
  }

  /** Counts what a conversation stores; throws `ceiling_exceeded` when the account has no room for more. */
  admitConversation(conversation: string, storedBytes: number): Promise<Outcome<void>> {
    return this.#run(() => {
      if (this.#conversations.has(conversation))
        this.#stored.set(conversation, { [conversation]: storedBytes })
      this.#stored.check(1, 'store the message')
    })
  }

  reportConversation(view: ConversationView): Promise<Outcome<void>> {
    return this.#run(() => this.#conversations.report(view))
  }

  /** Conversations, newest first, as last reported. */
  conversations(limit: number, before: string | undefined): Promise<Outcome<readonly ConversationView[]>> {
    return this.#run(() => this.#conversations.list(limit, before))
  }

  removeConversation(conversation: string): Promise<Outcome<void>> {
    return this.#run(() => {
      this.#conversations.remove(conversation)
      this.#stored.remove(conversation)
    })
  }

  /** Adds a grant that this account is about to hold; `too_many_grants` at the limit. */
  addHeldGrant(held: HeldGrant, source: GrantSource): Promise<Outcome<void>> {
    return this.#run(() => this.#heldGrants.add(held, source, Date.now()))
  }

  /** Removes a revoked grant. A guest without grants is signed out. */
  removeHeldGrant(grant: string): Promise<Outcome<void>> {
    return this.#run(() => {
      this.#heldGrants.remove(grant)
      this.#signOutIdleGuests()
    })
  }

  /** Removes a grant that its sandbox does not have. */
  removeMissingGrant(grant: string): Promise<Outcome<void>> {
    return this.#run(() => {
      this.#heldGrants.removeMissing(grant, Date.now())
      this.#signOutIdleGuests()
    })
  }

  /** Grants of other accounts' sandboxes, as last known; the sandbox's object decides. */
  heldGrants(): Promise<Outcome<readonly HeldGrant[]>> {
    return this.#run(() => this.#heldGrants.list(Date.now()))
  }

  /**
   * Stores a browser's sign-in by the hash of its cookie. A `state` can complete one sign-in only. Returns the oldest logins,
   * if some were signed out for this one.
   */
  signIn(signIn: SignIn, hash: string, state?: UsedState): Promise<Outcome<readonly string[]>> {
    return this.#run(async () => {
      if (state !== undefined && !this.#signIns.useState(state.hash, state.expiresMs))
        throw unauthorized('this sign-in was completed before')
      const ended = this.#signIns.add(signIn, hash)
      await this.#revokeSignIns(ended)
      return ended
    })
  }

  findSignIn(hash: string): Promise<Outcome<SignIn | null>> {
    return this.#run(() => this.#signIns.find(hash, Date.now()) ?? null)
  }

  signIns(): Promise<Outcome<readonly SignIn[]>> {
    return this.#run(() => this.#signIns.list(Date.now()))
  }

  /**
   * Ends a sign-in and closes its connections in every sandbox; returns its login, or null when there is none. A guest gets a
   * new sign-in with every share link but has the cookie of the last one only, so all of them end together.
   */
  signOut(login: string): Promise<Outcome<string | null>> {
    return this.#run(async () => {
      if (!this.#signIns.remove(login)) return null
      await this.#revokeSignIns([login, ...(isGuestLogin(login) ? this.#signOutGuests() : [])])
      return login
    })
  }

  /**
   * Ends the sign-in of a token: what was issued for it until now is refused. Where `login` covers other tokens too, those
   * stay valid, but their connections are closed.
   */
  endToken(login: string, ended: EndedToken): Promise<Outcome<void>> {
    return this.#run(() => {
      const endedMs = this.#endedTokens.end(ended, Date.now())
      return this.#revoke([
        { type: 'sign_in_ended', login: ended.token, endedMs },
        ...(login === ended.token ? [] : [{ type: 'disconnect_sign_in', login } as const]),
      ])
    })
  }

  /** True when a token that is valid by itself is still accepted by this account. */
  acceptsToken(credential: IssuedCredential): Promise<Outcome<boolean>> {
    return this.#run(() => this.#endedTokens.accepts(credential, Date.now()))
  }

  /** True when this account stores the sign-in, as those of browsers and guests. */
  hasSignIn(login: string): Promise<Outcome<boolean>> {
    return this.#run(() => this.#signIns.list(Date.now()).some((known) => known.login === login))
  }

  /** True when the credential that a connection was opened with would still be accepted. */
  acceptsConnection({
    login = '',
    token = login,
    issuedMs,
    hasStoredSignIn,
  }: Pick<RecheckedConnection, 'login' | 'token' | 'issuedMs' | 'hasStoredSignIn'>): Promise<
    Outcome<boolean>
  > {
    const { config } = runtimeOf(this.env)
    return this.#run(() => {
      const credential = { login: token, ...(issuedMs === undefined ? {} : { issuedMs }) }
      if (!hasStoredSignIn) return this.#endedTokens.accepts(credential, Date.now())
      const signIn = this.#signIns.list(Date.now()).find((known) => known.login === login)
      return signIn !== undefined && isTrustedSignIn(signIn, config)
    })
  }

  /**
   * Deletes the account: its sandboxes with their grants, the grants that it holds, its sign-ins. The audit stays, and so does
   * the time of the deletion, before which no credential is accepted. Returns how many sandboxes have not confirmed it yet.
   */
  deleteAccount(account: string): Promise<Outcome<number>> {
    return this.#run(async (store) => {
      const nowMs = Date.now()
      const own = store.sandboxes().map(({ id }) => id)
      const held = this.#heldGrants.list(nowMs)
      this.#endedTokens.deleteAccount(nowMs)
      this.#destroyedLogs.clear()
      this.#revocation.enqueueDestroy(own, account)
      this.#revocation.enqueue(
        held.map(({ sandbox }) => sandbox),
        { type: 'holder_deleted', account },
      )
      for (const { login } of this.#signIns.list(nowMs)) this.#signIns.remove(login)
      for (const { grant } of held) this.#heldGrants.remove(grant)
      this.#deleteRuns()
      this.#deleteConversations()
      await this.#revocation.deliver()
      return this.#revocation.pendingSandboxes
    })
  }

  /** Counts an attach; `too_many_attaches` at the limit. */
  takeAttach(): Promise<Outcome<void>> {
    const { limits } = runtimeOf(this.env).config
    return this.#run(() => this.#attachBudget.take(limits.attachesPerMinutePerUser, Date.now()))
  }

  /** Adds entries to the audit; known ones are ignored. `owner` is this account. */
  recordAudit(owner: string, entries: readonly AuditEntry[]): Promise<Outcome<void>> {
    return this.#run(async () => {
      this.#audit.add(entries, owner, Date.now())
      await this.#scheduleAuditPrune()
    })
  }

  /** Records that a sandbox refused requests that control had allowed. `owner` is this account. */
  recordRefusals(owner: string, sandbox: string, refusals: readonly LateRefusal[]): Promise<Outcome<void>> {
    return this.#run(() => this.#audit.addRefusals(sandbox, refusals, owner, Date.now()))
  }

  /** An `AuditPage` as JSON: passing a thousand rows to the Worker as objects takes longer than reading them. */
  readAudit(query: AuditQuery): Promise<Outcome<string>> {
    return this.#run(() => JSON.stringify(this.#audit.page(query, Date.now())))
  }

  /** Retries revocations, and deletes expired audit rows even if the account is never used again. */
  override async alarm(): Promise<void> {
    await this.#revocation.deliver()
    this.#audit.prune(Date.now())
    await this.#scheduleAuditPrune()
  }

  #refuseDeleted(): void {
    if (Date.now() < (this.#endedTokens.accountDeletedMs ?? 0) + DELETION_MS)
      throw unauthorized('the account was just deleted')
  }

  /** Lets queued runs start. One that cannot be reached asks by itself a few seconds later. */
  #wakeRuns(): void {
    for (const run of this.#runs.startable()) this.ctx.waitUntil(this.#runObject(run).wake())
  }

  /** Deletes the runs of a deleted account. A run that cannot be reached deletes itself when it finds no index entry. */
  #deleteRuns(): void {
    for (const run of this.#runs.ids()) {
      this.#runs.remove(run)
      this.ctx.waitUntil(this.#runObject(run).deleteOrphaned())
    }
  }

  /** Deletes the conversations of a deleted account. One that cannot be reached deletes itself when it is not used any more. */
  #deleteConversations(): void {
    const { CONVERSATION } = this.env
    for (const id of this.#conversations.ids()) {
      this.#conversations.remove(id)
      this.ctx.waitUntil(CONVERSATION.get(CONVERSATION.idFromName(id)).deleteOrphaned())
    }
  }

  #runObject(run: string): DurableObjectStub<RunObject> {
    const { CLAUDE_SANDBOX } = this.env
    return CLAUDE_SANDBOX.get(CLAUDE_SANDBOX.idFromName(run))
  }

  #revokeSignIns(logins: readonly string[]): Promise<void> {
    const endedMs = Date.now()
    return this.#revoke(logins.map((login) => ({ type: 'sign_in_ended', login, endedMs })))
  }

  /** Reports events to every sandbox that this account owns or holds a grant of; stored in this turn, retried by the alarm. */
  #revoke(events: readonly RevocationEvent[]): Promise<void> {
    const own = this.#store.sandboxes().map(({ id }) => id)
    const held = this.#heldGrants.list(Date.now()).map(({ sandbox }) => sandbox)
    for (const event of events) this.#revocation.enqueue([...own, ...held], event)
    return this.#revocation.deliver()
  }

  /** Reports to the machine in the background; if that fails, the next report repeats it. */
  #reportUsage(): void {
    const { log } = runtimeOf(this.env)
    const report = this.#usage.report().catch((cause: unknown) => {
      log.warn('usage_not_reported', { cause: String(cause) })
    })
    this.ctx.waitUntil(report)
  }

  #sandbox(id: string): DurableObjectStub<SandboxObject> {
    const { SANDBOX } = this.env
    return SANDBOX.get(SANDBOX.idFromName(id))
  }

  #signOutIdleGuests(): void {
    if (this.#heldGrants.list(Date.now()).length === 0) this.#signOutGuests()
  }

  /** Ends the sign-ins of guests; returns their logins. */
  #signOutGuests(): readonly string[] {
    const guests = this.#signIns.list(Date.now()).filter(({ login }) => isGuestLogin(login))
    return guests.map(({ login }) => login).filter((login) => this.#signIns.remove(login))
  }

  async #scheduleAuditPrune(): Promise<void> {
    const { storage } = this.ctx
    const expiryMs = this.#audit.nextExpiryMs
    if (expiryMs === undefined || (await storage.getAlarm()) !== null) return
    await storage.setAlarm(Math.max(expiryMs, Date.now() + PRUNE_PAUSE_MS))
  }

  #run<T>(run: (store: AccountStore) => T | Promise<T>): Promise<Outcome<T>> {
    return settle(
      () => run(this.#store),
      (cause) => runtimeOf(this.env).log.error('account_error', { cause: String(cause) }),
    )
  }
}
