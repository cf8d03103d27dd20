import type { Scenario } from './scenario.ts'
import type { SimConnection } from './sim-connection.ts'
import type { Scheduler } from './scheduler.ts'

/** Longest outage of the relay. `LONG_OUTAGE_MS` exceeds every short keep time. */
const OUTAGE_MS = 3_000
const LONG_OUTAGE_MS = 20_000
/** Share of connections that must re-authorize soon, and their latest deadline. */
const SHORT_AUTHORIZATION_CHANCE = 0.15
const MAX_SHORT_AUTHORIZATION_MS = 3_000

/** Injects network and relay faults until `faultsUntilMs`. */
export class Faults {
  readonly #scheduler: Scheduler
  readonly #scenario: Scenario
  #connections: SimConnection[] = []
  #downUntilMs = 0
  #count = 0
  #shortAuthorizations = 0

  constructor(scheduler: Scheduler, scenario: Scenario) {
    this.#scheduler = scheduler
    this.#scenario = scenario
  }

  /** Connections dropped or abandoned so far. */
  get count(): number {
    return this.#count
  }

  /** Connections that got a short authorization. */
  get shortAuthorizations(): number {
    return this.#shortAuthorizations
  }

  /** False during an outage of the relay. */
  isUp(): boolean {
    return this.#scheduler.nowMs >= this.#downUntilMs
  }

  start(): void {
    this.#scheduler.after(this.#scheduler.random.int(0, this.#scenario.faultEveryMs), () =>
      this.#injectFault(),
    )
  }

  /** Registers a new connection; some are dropped during their hello exchange. */
  opened(connection: SimConnection): void {
    this.#connections = this.#connections.filter((open) => open.isOpen)
    this.#connections.push(connection)
    const { random, nowMs } = this.#scheduler
    if (nowMs >= this.#scenario.faultsUntilMs) return
    const draw = random.next()
    if (draw < 0.1) this.#scheduler.after(random.int(0, 60), () => this.#break(connection, 'drop'))
    else if (draw < 0.2) {
      this.#count += 1
      connection.dropAfterReceived(random.int(1, 3))
    }
  }

  /** The authorization of a new connection; some expire soon, at any point of the exchange. */
  drawAuthorization(): { readonly reauthorizeMs?: number } {
    const { random, nowMs } = this.#scheduler
    if (nowMs >= this.#scenario.faultsUntilMs || !random.chance(SHORT_AUTHORIZATION_CHANCE)) return {}
    this.#shortAuthorizations += 1
    return { reauthorizeMs: nowMs + random.int(0, MAX_SHORT_AUTHORIZATION_MS) }
  }

  #injectFault(): void {
    const { random, nowMs } = this.#scheduler
    const { faultsUntilMs, faultEveryMs, kind } = this.#scenario
    if (nowMs >= faultsUntilMs) return
    const open = this.#connections.filter((connection) => connection.isOpen)
    const draw = random.int(0, 9)
    if (draw === 0) {
      this.#downUntilMs = nowMs + random.int(0, kind === 'reap' ? LONG_OUTAGE_MS : OUTAGE_MS)
      for (const connection of open) this.#break(connection, 'drop')
    } else if (open.length > 0) {
      const connection = random.pick(open)
      if (draw === 1) connection.blackHole()
      else this.#break(connection, draw <= 3 ? 'abandon' : 'drop')
    }
    this.#scheduler.after(random.int(0, faultEveryMs), () => this.#injectFault())
  }

  #break(connection: SimConnection, how: 'drop' | 'abandon'): void {
    this.#count += 1
    if (how === 'drop') connection.drop()
    else connection.abandon()
  }
}
