import { DurableObject } from 'cloudflare:workers'
import { formatSlotAddress } from '@sandwire/internal-api'
import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import { isEqualInConstantTime } from '../bytes.ts'
import type { Env } from '../env.ts'
import { type Outcome, settle, unwrap } from '../outcome.ts'
import { ownerCall } from '../run/agent-sandbox.ts'
import { runtimeOf } from '../runtime.ts'
import {
  type GatewayGrant,
  type GatewaySource,
  type GatewayUsage,
  NO_TOKENS,
  type TokenUsage,
} from './grant.ts'
import { GrantStore, type ModelUsage, type StoredGrant } from './grant-store.ts'
import { type CostBound, decide } from './ledger.ts'

/** Longer than any request of the gateway takes. */
const RESERVATION_MS = 15 * 60_000

/** Errors that say that a session does not run any more. */
const SESSION_OVER: ReadonlySet<ErrorCode> = new Set([
  'session_not_found',
  'session_gone',
  'sandbox_stopped',
  'sandbox_not_found',
  'sandbox_destroying',
])

/** A reservation for one request, or why there is none. */
export type ReserveResult =
  | { readonly kind: 'reserved'; readonly id: string; readonly outputTokens: number }
  | { readonly kind: 'wait' }
  | { readonly kind: 'exhausted'; readonly reason: string }

/** A token as presented, with the source of its request. */
export interface PresentedToken {
  readonly tokenHash: string
  readonly source: GatewaySource
}

function addTokens(one: TokenUsage, other: TokenUsage): TokenUsage {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
  }
}

/** The gateway grant of one run, named by the run's id: token hash, limits, reservations and usage. */
export class GatewayGrantObject extends DurableObject<Env> {
  readonly #store: GrantStore

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#store = new GrantStore(ctx.storage.sql)
    runtimeOf(env).metrics.count('sandwire_objects_constructed_total', { class: 'gateway_grant' })
  }

  /** Creates the grant, or replaces its token and limits; usage is kept. */
  create(grant: GatewayGrant, tokenHash: string): Promise<Outcome<void>> {
    return this.#run(async () => {
      this.#store.write(grant, tokenHash)
      // Runs and conversations delete theirs.
      if (grant.session !== undefined) await this.ctx.storage.setAlarm(grant.expiresMs)
    })
  }

  /** Refuses all further requests; requests in progress are still settled. */
  end(): Promise<Outcome<GatewayUsage>> {
    return this.#run(() => {
      const usage = this.#usage()
      this.#store.end()
      return usage
    })
  }

  usage(): Promise<Outcome<GatewayUsage>> {
    return this.#run(() => this.#usage())
  }

  /** Deletes the grant and its usage. */
  remove(): Promise<Outcome<void>> {
    return this.#run(() => this.#deleteAll())
  }

  /** Fires when the grant of a session has expired. */
  override async alarm(): Promise<void> {
    await this.#deleteAll()
  }

  /** The grant of a valid token; throws `unauthorized` for every other. */
  authorize(presented: PresentedToken): Promise<Outcome<GatewayGrant>> {
    return this.#run(() => this.#authorize(presented))
  }

  /** Reserves what a request may cost. */
  reserve(presented: PresentedToken, bound: CostBound): Promise<Outcome<ReserveResult>> {
    return this.#run(async (nowMs) => {
      const grant = await this.#authorize(presented)
      const decision = decide(grant, this.#account(), bound, nowMs)
      if (decision.kind === 'exhausted') this.#store.markExhausted()
      if (decision.kind !== 'reserved') return decision
      const id = crypto.randomUUID()
      const { costMicroUsd, tokens, outputTokens } = decision
      const { model } = bound
      this.#store.addReservation({ id, model, costMicroUsd, tokens, expiresMs: nowMs + RESERVATION_MS })
      return { kind: 'reserved', id, outputTokens }
    })
  }

  /** Replaces a reservation by what the request used. Repeated calls count once. */
  settle(id: string, model: string, usage: ModelUsage): Promise<Outcome<void>> {
    return this.#run(() => {
      if (this.#store.read() === undefined) return
      if (this.#store.takeReservation(id)) this.#store.addUsage(model, usage)
    })
  }

  async #authorize({ tokenHash, source }: PresentedToken): Promise<GatewayGrant> {
    const stored = this.#store.read()
    const isValid =
      stored !== undefined &&
      isEqualInConstantTime(stored.tokenHash, tokenHash) &&
      this.#isOpen(stored) &&
      (await this.#isAt(stored.grant.sandbox, source)) &&
      (await this.#isInSession(stored.grant)) &&
      // It may have ended while the sandbox was asked.
      this.#isOpen(this.#store.read())
    if (!isValid) throw new SandwireError('unauthorized', 'The gateway token is not valid here')
    return stored.grant
  }

  async #deleteAll(): Promise<void> {
    await this.ctx.storage.deleteAlarm()
    await this.ctx.storage.deleteAll()
  }

  #isOpen(stored: StoredGrant | undefined): boolean {
    return stored !== undefined && !stored.isEnded && stored.grant.expiresMs > runtimeOf(this.env).nowMs()
  }

  async #isAt(sandbox: string, source: GatewaySource): Promise<boolean> {
    if ('sandbox' in source) return source.sandbox === sandbox
    const object = this.env.SANDBOX.get(this.env.SANDBOX.idFromName(sandbox))
    return object.isRunningAt(formatSlotAddress(source.slot))
  }

  /** False once the session has ended, or its account has lost the access to it; then the grant has ended too. */
  async #isInSession({ sandbox, session }: GatewayGrant): Promise<boolean> {
    if (session === undefined) return true
    const object = this.env.SANDBOX.get(this.env.SANDBOX.idFromName(sandbox))
    const call = ownerCall({ owner: session.account, ownerName: '' })
    const shown = await object.showSession(call, session.id)
    if (shown.ok ? shown.value.exit === null : !SESSION_OVER.has(shown.code)) {
      unwrap(shown)
      return true
    }
    this.#store.end()
    return false
  }

  #account() {
    const { models } = this.#usageByModel()
    const used = Object.values(models)
    return {
      spentMicroUsd: used.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0),
      spentTokens: used.reduce(
        (sum, each) =>
          sum + each.inputTokens + each.outputTokens + each.cacheReadTokens + each.cacheWriteTokens,
        0,
      ),
      reservations: this.#store.reservations(),
    }
  }

  #usageByModel() {
    const models = this.#store.usageByModel()
    return { models, tokens: Object.values(models).reduce<TokenUsage>(addTokens, NO_TOKENS) }
  }

  #usage(): GatewayUsage {
    const stored = this.#store.read()
    if (stored === undefined) throw new SandwireError('not_found', 'The run has no gateway grant')
    const { models, tokens } = this.#usageByModel()
    const { spentMicroUsd, reservations } = this.#account()
    return {
      ...tokens,
      requests: stored.requests,
      costMicroUsd: spentMicroUsd,
      reservedMicroUsd: reservations.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0),
      budgetMicroUsd: stored.grant.budgetMicroUsd,
      isExhausted: stored.isExhausted,
      models,
    }
  }

  #run<T>(run: (nowMs: number) => T | Promise<T>): Promise<Outcome<T>> {
    const { log, nowMs } = runtimeOf(this.env)
    return settle(
      () => run(nowMs()),
      (cause) => log.error('gateway_error', { cause: String(cause) }),
    )
  }
}
