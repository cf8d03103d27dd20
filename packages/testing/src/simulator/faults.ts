import type { Scenario } from './scenario.ts'
import type { SimLink } from './sim-link.ts'
import type { World } from './world.ts'

/** Longest time the relay is down; longer than any short keep. */
const OUTAGE_MS = 3_000
const LONG_OUTAGE_MS = 20_000
/** How often a connection has to show its right again soon, and when at most. */
const SHORT_STAY = 0.15
const MAX_STAY_MS = 3_000

/** Breaks connections in every way a network and a relay can, until the scenario says stop. */
export class Faults {
  readonly #world: World
  readonly #scenario: Scenario
  #links: SimLink[] = []
  #downUntilMs = 0
  #count = 0
  #stays = 0

  constructor(world: World, scenario: Scenario) {
    this.#world = world
    this.#scenario = scenario
  }

  /** Connections broken so far. */
  get count(): number {
    return this.#count
  }

  /** Connections that were authorized for a moment only. */
  get stays(): number {
    return this.#stays
  }

  /** Whether the relay is there. */
  isUp(): boolean {
    return this.#world.nowMs >= this.#downUntilMs
  }

  start(): void {
    this.#world.after(this.#world.random.int(0, this.#scenario.faultEveryMs), () => this.#strike())
  }

  /** A connection was opened: now and then it breaks right at its hello, before or after the answer. */
  opened(link: SimLink): void {
    this.#links = this.#links.filter((open) => open.isOpen)
    this.#links.push(link)
    const { random, nowMs } = this.#world
    if (nowMs >= this.#scenario.faultsUntilMs) return
    const draw = random.next()
    if (draw < 0.1) this.#world.after(random.int(0, 60), () => this.#break(link, 'cut'))
    else if (draw < 0.2) {
      this.#count += 1
      link.cutAfterUp(random.int(1, 3))
    }
  }

  /** For how long a new connection is authorized: now and then only for a moment, which ends at any step of the conversation. */
  stay(): { readonly reauthorizeMs?: number } {
    const { random, nowMs } = this.#world
    if (nowMs >= this.#scenario.faultsUntilMs || !random.chance(SHORT_STAY)) return {}
    this.#stays += 1
    return { reauthorizeMs: nowMs + random.int(0, MAX_STAY_MS) }
  }

  #strike(): void {
    const { random, nowMs } = this.#world
    const { faultsUntilMs, faultEveryMs, theme } = this.#scenario
    if (nowMs >= faultsUntilMs) return
    const open = this.#links.filter((link) => link.isOpen)
    const kind = random.int(0, 9)
    if (kind === 0) {
      this.#downUntilMs = nowMs + random.int(0, theme === 'reap' ? LONG_OUTAGE_MS : OUTAGE_MS)
      for (const link of open) this.#break(link, 'cut')
    } else if (open.length > 0) {
      const link = random.pick(open)
      if (kind === 1) link.blackHole()
      else this.#break(link, kind <= 3 ? 'abandon' : 'cut')
    }
    this.#world.after(random.int(0, faultEveryMs), () => this.#strike())
  }

  #break(link: SimLink, how: 'cut' | 'abandon'): void {
    this.#count += 1
    if (how === 'cut') link.cut()
    else link.abandon()
  }
}
