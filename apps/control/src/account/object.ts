import { DurableObject } from 'cloudflare:workers'
import { SandwireError } from '@sandwire/protocol'
import { notAccepted } from '../auth/authenticator.ts'
import type { SignIn } from '../auth/browser-cookie.ts'
import type { AuditEntry } from '../audit/entry.ts'
import { isGuestLogin } from '../auth/guests.ts'
import type { Env } from '../env.ts'
import { type Outcome, settle } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import type { HeldGrant } from '../sandbox/grants.ts'
import type { SandboxView } from '../sandbox/record.ts'
import type { SessionFacts } from '../sandbox/session-view.ts'
import { AttachBudget } from './attach-budget.ts'
import { type AuditPage, type AuditQuery, AuditStore } from './audit-store.ts'
import { SharedWithMe } from './shared.ts'
import { SignIns, type SpentState } from './sign-ins.ts'
import { AccountStore, type IndexedSession } from './store.ts'

/** Between two parts of a long clean-up. */
const PRUNE_PAUSE_MS = 1_000

/** One account: the names of its sandboxes, an index of what runs in them, and the browsers signed in to it. */
export class AccountObject extends DurableObject<Env> {
  readonly #store: AccountStore
  readonly #signIns: SignIns
  readonly #audit: AuditStore
  readonly #attaches: AttachBudget
  readonly #shared: SharedWithMe

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#store = new AccountStore(ctx.storage.sql)
    this.#signIns = new SignIns(ctx.storage.sql)
    this.#audit = new AuditStore(ctx.storage.sql)
    this.#attaches = new AttachBudget(ctx.storage.sql)
    this.#shared = new SharedWithMe(ctx.storage.sql)
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

  /** Somebody shared something with this account. */
  addShared(held: HeldGrant): Promise<Outcome<void>> {
    return this.#run(() => this.#shared.add(held, Date.now()))
  }

  /** What was shared is not any more. A guest who is left with nothing is signed out. */
  dropShared(grant: string): Promise<Outcome<void>> {
    return this.#run(() => {
      this.#shared.remove(grant)
      if (this.#shared.list(Date.now()).length > 0) return
      for (const { login } of this.#signIns.list(Date.now()))
        if (isGuestLogin(login)) this.#signIns.remove(login)
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
    return this.#run(() => {
      if (state !== undefined && !this.#signIns.spend(state.hash, state.expiresMs))
        throw notAccepted('this sign-in was completed before')
      return this.#signIns.add(signIn, hash)
    })
  }

  findSignIn(hash: string): Promise<Outcome<SignIn | null>> {
    return this.#run(() => this.#signIns.find(hash, Date.now()) ?? null)
  }

  signIns(): Promise<Outcome<readonly SignIn[]>> {
    return this.#run(() => this.#signIns.list(Date.now()))
  }

  /** Ends a sign-in; returns its login, from which on what hangs on it has to end too, or null when there is none. */
  signOut(login: string): Promise<Outcome<string | null>> {
    return this.#run(() => (this.#signIns.remove(login) ? login : null))
  }

  /** Counts an attach; `too_many_attaches` when the account may not have more now. */
  takeAttach(): Promise<Outcome<void>> {
    const { limits } = runtimeOf(this.env).config
    return this.#run(() => this.#attaches.take(limits.attachesPerMinutePerUser, Date.now()))
  }

  /** Writes down what was done or refused; an entry that is there already is not written again. */
  recordAudit(entries: readonly AuditEntry[]): Promise<Outcome<void>> {
    return this.#run(async () => {
      this.#audit.add(entries, Date.now())
      await this.#watchAudit()
    })
  }

  readAudit(query: AuditQuery): Promise<Outcome<AuditPage>> {
    return this.#run(() => this.#audit.page(query, Date.now()))
  }

  /** Rings when rows of the audit have become too old: an account that is never used again forgets them too. */
  override async alarm(): Promise<void> {
    this.#audit.prune(Date.now())
    await this.#watchAudit()
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
