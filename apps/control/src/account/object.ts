import { DurableObject } from 'cloudflare:workers'
import { SandwireError } from '@sandwire/protocol'
import { isTrustedSignIn, type SignIn } from '../auth/browser-sign-in.ts'
import { isGuestLogin, unauthorized } from '../auth/identity.ts'
import type { AuditEntry } from '../audit/entry.ts'
import type { Env } from '../env.ts'
import { type Outcome, settle, unwrap } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import type { HeldGrant } from '../sandbox/grants.ts'
import type { LateRefusal } from '../sandbox/late-refusals.ts'
import type { SandboxObject } from '../sandbox/object.ts'
import type { PlainStay } from '../sandbox/plain-stays.ts'
import type { SandboxView } from '../sandbox/record.ts'
import type { SessionFacts } from '../sandbox/session-view.ts'
import { WakeUp } from '../sandbox/wake-up.ts'
import { AttachBudget } from './attach-budget.ts'
import { type AuditPage, type AuditQuery, AuditStore } from './audit-store.ts'
import { deliverFarewells } from './deliver-farewells.ts'
import { type Dated, type EndedToken, Farewells, type Word } from './farewells.ts'
import { type Arrival, SharedWithMe } from './shared.ts'
import { SignIns, type SpentState } from './sign-ins.ts'
import { AccountStore, type IndexedSession } from './store.ts'

/** Between two parts of a long clean-up. */
const PRUNE_PAUSE_MS = 1_000
/** Between two tries to tell sandboxes what ended. */
const FAREWELL_PAUSE_MS = 1_000
/** After its deletion, calls of an account may still be under way that were let in before. */
const CLOSING_MS = 60_000

/** One account: the names of its sandboxes, an index of what runs in them, and the browsers signed in to it. */
export class AccountObject extends DurableObject<Env> {
  readonly #store: AccountStore
  readonly #signIns: SignIns
  readonly #audit: AuditStore
  readonly #attaches: AttachBudget
  readonly #shared: SharedWithMe
  readonly #farewells: Farewells
  readonly #wakeUp: WakeUp

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#store = new AccountStore(ctx.storage.sql)
    this.#signIns = new SignIns(ctx.storage.sql)
    this.#audit = new AuditStore(ctx.storage.sql)
    this.#attaches = new AttachBudget(ctx.storage.sql)
    this.#shared = new SharedWithMe(ctx.storage.sql)
    this.#farewells = new Farewells(ctx.storage.sql)
    this.#wakeUp = new WakeUp(ctx.storage)
    runtimeOf(env).metrics.count('sandwire_objects_constructed_total', { class: 'account' })
  }

  /** Takes a name for a new sandbox. A name in use answers with the id it has, and `isNew` false. */
  claim(name: string, id: string): Promise<Outcome<{ id: string; isNew: boolean }>> {
    return this.#run((store) => {
      const known = store.idOf(name)
      if (known !== undefined) return { id: known, isNew: false }
      const { maxSandboxes, workspaceMode, defaultName } = runtimeOf(this.env).config
      if (workspaceMode === 'local' && name !== defaultName)
        throw new SandwireError('sandbox_not_found', `This server has one sandbox, "${defaultName}"`)
      if (Date.now() < (this.#farewells.deletedMs ?? 0) + CLOSING_MS)
        throw unauthorized('the account was just deleted')
      if (store.countSandboxes() >= maxSandboxes)
        throw new SandwireError('too_many_sandboxes', `Cannot have more than ${maxSandboxes} sandboxes`)
      store.insertSandbox(id, name)
      return { id, isNew: true }
    })
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

  /** A sandbox says how it is; `sessions` replaces those known of it. */
  report(view: SandboxView, sessions?: readonly SessionFacts[]): Promise<Outcome<void>> {
    return this.#run((store) => {
      store.setView(view)
      if (sessions !== undefined) store.setSessions(view.id, sessions)
    })
  }

  remove(sandbox: string): Promise<Outcome<void>> {
    return this.#run((store) => store.removeSandbox(sandbox))
  }

  /** Somebody shares something with this account; `too_many_grants` when it has no room for that. */
  addShared(held: HeldGrant, arrival: Arrival): Promise<Outcome<void>> {
    return this.#run(() => this.#shared.add(held, arrival, Date.now()))
  }

  /** What was shared is not any more. A guest who is left with nothing is signed out. */
  dropShared(grant: string): Promise<Outcome<void>> {
    return this.#run(() => {
      this.#shared.remove(grant)
      this.#endIdleGuests()
    })
  }

  /** What was shared was looked for and not found. */
  forgetShared(grant: string): Promise<Outcome<void>> {
    return this.#run(() => {
      this.#shared.forget(grant, Date.now())
      this.#endIdleGuests()
    })
  }

  /** What others shared, as last known; the grants themselves decide. */
  shared(): Promise<Outcome<readonly HeldGrant[]>> {
    return this.#run(() => this.#shared.list(Date.now()))
  }

  /**
   * Remembers a browser by the hash of its cookie. A `state` that completed a sign-in before is refused. Returns the oldest
   * logins, if some had to end for this one.
   */
  signIn(signIn: SignIn, hash: string, state?: SpentState): Promise<Outcome<readonly string[]>> {
    return this.#run(async () => {
      if (state !== undefined && !this.#signIns.spend(state.hash, state.expiresMs))
        throw unauthorized('this sign-in was completed before')
      const ended = this.#signIns.add(signIn, hash)
      await this.#sayGoodbye(ended.map((login) => ({ is: 'login', login, endedMs: Date.now() })))
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
   * Ends a sign-in and what hangs on it, in every sandbox; returns its login, or null when there is none. Each link makes a
   * guest another one, of which they know only the last: they all end together.
   */
  signOut(login: string): Promise<Outcome<string | null>> {
    return this.#run(async () => {
      if (!this.#signIns.remove(login)) return null
      const ended = [login, ...(isGuestLogin(login) ? this.#endGuests() : [])]
      await this.#sayGoodbye(ended.map((each) => ({ is: 'login', login: each, endedMs: Date.now() })))
      return login
    })
  }

  /**
   * The same for one that a token comes from: what was issued for it so far is not accepted any more. Where `login` stands for
   * other tokens too, those stay good, though what they opened ends.
   */
  endToken(login: string, ended: EndedToken): Promise<Outcome<void>> {
    return this.#run(() => {
      const endedMs = this.#farewells.endToken(ended, Date.now())
      return this.#sayGoodbye([
        { is: 'login', login: ended.token, endedMs },
        ...(login === ended.token ? [] : [{ is: 'tokens', login } as const]),
      ])
    })
  }

  /** Whether a token that is good by itself is still accepted here. */
  isWelcome(dated: Dated): Promise<Outcome<boolean>> {
    return this.#run(() => this.#farewells.accepts(dated, Date.now()))
  }

  /** Whether a sign-in is one of those that are kept here. */
  keepsSignIn(login: string): Promise<Outcome<boolean>> {
    return this.#run(() => this.#signIns.list(Date.now()).some((known) => known.login === login))
  }

  /** Whether what a connection was opened with would still be let in: a sign-in that is kept here, or a token. */
  welcomesStill({
    login = '',
    token = login,
    issuedMs,
    isKept,
  }: Pick<PlainStay, 'login' | 'token' | 'issuedMs' | 'isKept'>): Promise<Outcome<boolean>> {
    const { config } = runtimeOf(this.env)
    return this.#run(() => {
      const dated = { login: token, ...(issuedMs === undefined ? {} : { issuedMs }) }
      if (!isKept) return this.#farewells.accepts(dated, Date.now())
      const signIn = this.#signIns.list(Date.now()).find((known) => known.login === login)
      return signIn !== undefined && isTrustedSignIn(signIn, config)
    })
  }

  /**
   * Deletes the account: its sandboxes with what was shared of them, what it was given, its sign-ins. The audit stays, and so
   * does the moment, before which nothing counts any more. Returns how many sandboxes have not ended yet.
   */
  close(account: string): Promise<Outcome<number>> {
    return this.#run(async (store) => {
      const nowMs = Date.now()
      const own = store.sandboxes().map(({ id }) => id)
      const shared = this.#shared.list(nowMs)
      this.#farewells.close(nowMs)
      this.#farewells.say(own, { is: 'destroy', account }, nowMs)
      this.#farewells.say(
        shared.map(({ sandbox }) => sandbox),
        { is: 'leave', account },
        nowMs,
      )
      for (const { login } of this.#signIns.list(nowMs)) this.#signIns.remove(login)
      for (const { grant } of shared) this.#shared.remove(grant)
      await this.#sayGoodbye([])
      return this.#farewells.count
    })
  }

  /** Counts an attach; `too_many_attaches` when the account may not have more now. */
  takeAttach(): Promise<Outcome<void>> {
    const { limits } = runtimeOf(this.env).config
    return this.#run(() => this.#attaches.take(limits.attachesPerMinutePerUser, Date.now()))
  }

  /** Writes down what was done or refused; an entry that is there already is not written again. `owner` is this account. */
  recordAudit(owner: string, entries: readonly AuditEntry[]): Promise<Outcome<void>> {
    return this.#run(async () => {
      this.#audit.add(entries, owner, Date.now())
      await this.#watchAudit()
    })
  }

  /** Writes down what became of attaches that were let in and then refused by their sandbox. `owner` is this account. */
  recordRefusals(owner: string, sandbox: string, refusals: readonly LateRefusal[]): Promise<Outcome<void>> {
    return this.#run(() => this.#audit.addRefusals(sandbox, refusals, owner, Date.now()))
  }

  readAudit(query: AuditQuery): Promise<Outcome<AuditPage>> {
    return this.#run(() => this.#audit.page(query, Date.now()))
  }

  /**
   * Rings while a sandbox has still to hear what ended, and when rows of the audit have become too old: an account that is
   * never used again forgets them too.
   */
  override async alarm(): Promise<void> {
    await this.#sayGoodbye([])
    this.#audit.prune(Date.now())
    await this.#watchAudit()
  }

  /** Writes down what every sandbox of this account has to hear, in this very turn, and tells them; the alarm goes on. */
  async #sayGoodbye(words: readonly Word[]): Promise<void> {
    const { log, nowMs } = runtimeOf(this.env)
    const own = this.#store.sandboxes().map(({ id }) => id)
    const shared = this.#shared.list(nowMs()).map(({ sandbox }) => sandbox)
    for (const word of words) this.#farewells.say([...own, ...shared], word, nowMs())
    if (this.#farewells.count === 0) return
    await this.#wakeUp.by(nowMs() + FAREWELL_PAUSE_MS)
    const tell = (sandbox: string, word: Word): Promise<void> => this.#tell(sandbox, word)
    const evict = async (sandbox: string, account: string): Promise<void> =>
      unwrap(await this.#sandbox(sandbox).evict(account))
    await deliverFarewells({ farewells: this.#farewells, tell, evict, nowMs, log })
    const { nextMs } = this.#farewells
    if (nextMs !== undefined) await this.#wakeUp.by(Math.max(nextMs, nowMs() + FAREWELL_PAUSE_MS))
  }

  #sandbox(id: string): DurableObjectStub<SandboxObject> {
    const { SANDBOX } = this.env
    return SANDBOX.get(SANDBOX.idFromName(id))
  }

  async #tell(sandbox: string, word: Word): Promise<void> {
    const object = this.#sandbox(sandbox)
    switch (word.is) {
      case 'login':
        return unwrap(await object.endLogin(word.login, word.endedMs))
      case 'tokens':
        return unwrap(await object.cutLogin(word.login))
      case 'leave':
        return unwrap(await object.leave(word.account))
      case 'destroy':
        return unwrap(await object.abandon(word.account, sandbox))
    }
  }

  #endIdleGuests(): void {
    if (this.#shared.list(Date.now()).length === 0) this.#endGuests()
  }

  /** Ends every sign-in of a guest; returns their logins. */
  #endGuests(): readonly string[] {
    const guests = this.#signIns.list(Date.now()).filter(({ login }) => isGuestLogin(login))
    return guests.map(({ login }) => login).filter((login) => this.#signIns.remove(login))
  }

  async #watchAudit(): Promise<void> {
    const { storage } = this.ctx
    const expiryMs = this.#audit.nextExpiryMs
    if (expiryMs === undefined || (await storage.getAlarm()) !== null) return
    await storage.setAlarm(Math.max(expiryMs, Date.now() + PRUNE_PAUSE_MS))
  }

  #run<T>(run: (store: AccountStore) => T | Promise<T>): Promise<Outcome<T>> {
    return settle(
      () => run(this.#store),
      (cause) => runtimeOf(this.env).log.error('account_fault', { cause: String(cause) }),
    )
  }
}
