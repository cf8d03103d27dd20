import { DurableObject } from 'cloudflare:workers'
import { type Amounts, RESOURCES } from '@sandwire/operator-settings'
import { ceilingError, checkCeilings } from '../ceilings/check-ceilings.ts'
import type { Env } from '../env.ts'
import { type Outcome, settle } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import { MachineStore } from './store.ts'

function add(one: Amounts, other: Amounts, sign: 1 | -1 = 1): Amounts {
  return Object.fromEntries(
    RESOURCES.map((resource) => [resource, (one[resource] ?? 0) + sign * (other[resource] ?? 0)]),
  )
}

/** The whole server: what its accounts use together, against the ceilings of the machine. */
export class MachineObject extends DurableObject<Env> {
  readonly #store: MachineStore

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#store = new MachineStore(ctx.storage.sql)
    runtimeOf(env).metrics.count('sandwire_objects_constructed_total', { class: 'machine' })
  }

  /**
   * Grants what an account adds to its use, and stores its use with it. Throws `ceiling_exceeded` when the machine has no room, or
   * the rest is reserved for others. `account` is any text that is unique for the account.
   */
  reserve(account: string, usage: Amounts, asked: Amounts, action: string): Promise<Outcome<void>> {
    return this.#run((nowMs) => {
      const own = add(usage, asked, -1)
      const all = add(this.#store.total(nowMs, account), own)
      const violation = checkCeilings({ adds: asked }, { account: own, machine: all }, this.#ceilings)
      if (violation !== undefined) throw ceilingError(violation, action)
      this.#store.set(account, usage, nowMs)
    })
  }

  /** Stores what an account uses. */
  report(account: string, usage: Amounts): Promise<Outcome<void>> {
    return this.#run((nowMs) => this.#store.set(account, usage, nowMs))
  }

  /** What all accounts use, and how many have sandboxes. */
  usage(): Promise<Outcome<Amounts & { readonly accounts: number }>> {
    return this.#run((nowMs) => this.#store.total(nowMs))
  }

  /** Ceilings of accounts are checked by their own objects. */
  get #ceilings() {
    return { ...runtimeOf(this.env).ceilings, account: {} }
  }

  #run<T>(run: (nowMs: number) => T): Promise<Outcome<T>> {
    const { log, nowMs } = runtimeOf(this.env)
    return settle(
      () => run(nowMs()),
      (cause) => log.error('machine_error', { cause: String(cause) }),
    )
  }
}
