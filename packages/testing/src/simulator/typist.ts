import type { Scenario } from './scenario.ts'
import type { SimClient } from './sim-client.ts'
import type { World } from './world.ts'

/** Longest pause between two things that a client does, while it has something to write and after. */
const BUSY_MS = 300
const IDLE_MS = 2_000

/** What a typist has to know of the others. */
export interface Company {
  readonly scenario: Scenario
  /** The creator of the session, unless it is a plain client. */
  creator(): SimClient | undefined
  /** The one that came in the place of a creator that left. */
  successor(): SimClient | undefined
}

/** The person at a client: writes in pieces at random times, with signals and resizes in between, and may end the input. */
export class Typist {
  readonly #world: World
  readonly #client: SimClient
  readonly #company: Company
  readonly #isDriver: boolean
  #left: number
  #cols = 100

  constructor(world: World, client: SimClient, company: Company) {
    this.#world = world
    this.#client = client
    this.#company = company
    this.#isDriver = client.plan.authority === 'driver'
    this.#left = client.plan.authority === 'viewer' ? 0 : company.scenario.inputBytes
  }

  start(): void {
    this.#again(BUSY_MS)
  }

  #again(withinMs: number): void {
    this.#world.after(this.#world.random.int(0, withinMs), () => this.#step())
  }

  #step(): void {
    const { theme } = this.#company.scenario
    // Without its driver a session waits for ever; here nobody else wants it then.
    if (theme === 'reap' && this.#company.creator()?.isOver === true) this.#client.detach()
    if (this.#client.isOver) return
    this.#write()
    if (this.#isDriver) this.#drive()
    const isDone = this.#left === 0 && this.#canEnd()
    if (isDone) this.#client.eof()
    // With takes, an end of input can be refused like any input, so it is said again.
    const mayStop = theme !== 'takes' && theme !== 'reap' && this.#left === 0
    if (mayStop && (isDone || !this.#isDriver)) return
    this.#again(this.#left === 0 ? IDLE_MS : BUSY_MS)
  }

  #write(): void {
    if (this.#left === 0 || !this.#client.session.canWrite) return
    const length = Math.min(this.#left, this.#world.random.int(1, 50))
    this.#left -= length
    this.#client.write(length)
  }

  #drive(): void {
    const { random } = this.#world
    if (random.chance(0.1)) this.#client.resize((this.#cols += 1))
    if (random.chance(0.1)) this.#client.signal(random.pick(['SIGUSR1', 'SIGUSR2']))
    if (this.#wantsLease() && random.chance(0.1)) this.#client.takeLease()
    if (this.#isSuccessor() && this.#client.session.role === 'viewer') this.#client.takeLease()
  }

  #wantsLease(): boolean {
    const { theme, faultsUntilMs } = this.#company.scenario
    return theme === 'takes' && this.#world.nowMs < faultsUntilMs
  }

  #isSuccessor(): boolean {
    return this.#company.successor() === this.#client
  }

  /** The end of input is for whoever drives: the creator, its successor, or with takes the last one. */
  #canEnd(): boolean {
    const { theme, faultsUntilMs } = this.#company.scenario
    if (this.#client.session.role !== 'driver') return false
    if (theme === 'takes') return this.#world.nowMs > faultsUntilMs
    return theme !== 'rejoin' || this.#isSuccessor()
  }
}
