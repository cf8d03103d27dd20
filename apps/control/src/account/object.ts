import { DurableObject } from 'cloudflare:workers'
import { SandwireError } from '@sandwire/protocol'
import type { AuditEntry } from '../audit/entry.ts'
import type { Env } from '../env.ts'
import { type Outcome, settle } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import type { SandboxView } from '../sandbox/record.ts'
import type { SessionFacts } from '../sandbox/session-view.ts'
import { type AuditPage, type AuditQuery, AuditStore } from './audit-store.ts'
import { AccountStore, type IndexedSession, SIGN_IN_LIFE_MS } from './store.ts'

/** Between two parts of a long clean-up. */
const PRUNE_PAUSE_MS = 1_000

/** One account: the names of its sandboxes, an index of what runs in them, and the browsers signed in to it. */
export class AccountObject extends DurableObject<Env> {
  readonly #store: AccountStore
  readonly #audit: AuditStore

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#store = new AccountStore(ctx.storage.sql)
    this.#audit = new AuditStore(ctx.storage.sql)
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

  /** Remembers a browser by the hash of its cookie. */
  signIn(hash: string): Promise<Outcome<void>> {
    return this.#run((store) => {
      store.removeExpired(Date.now())
      store.addSignIn(hash, Date.now() + SIGN_IN_LIFE_MS)
    })
  }

  isSignedIn(hash: string): Promise<Outcome<boolean>> {
    return this.#run((store) => store.isSignedIn(hash, Date.now()))
  }

  signOut(hash: string): Promise<Outcome<void>> {
    return this.#run((store) => store.removeSignIn(hash))
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
