import type { Scenario } from './scenario.ts'
import type { SimClient } from './sim-client.ts'
import type { Scheduler } from './scheduler.ts'

/** Longest pause between two actions, with and without input left to write. */
const BUSY_MS = 300
const IDLE_MS = 2_000

/** The other clients of the run. */
export interface Peers {
  readonly scenario: Scenario
  /** The creator of the session, unless it is a plain client. */
  creator(): SimClient | undefined
  /** The client that replaced a creator that detached. */
  successor(): SimClient | undefined
}

/** Drives one client: writes chunks at random times, with signals and resizes in between, and may end the input. */
export class SimUser {
  readonly #scheduler: Scheduler
  readonly #client: SimClient
  readonly #peers: Peers
  readonly #isDriver: boolean
  #bytesLeft: number
  #cols = 100

  constructor(scheduler: Scheduler, client: SimClient, peers: Peers) {
    this.#scheduler = scheduler
    this.#client = client
    this.#peers = peers
    this.#isDriver = client.plan.authority === 'driver'
    this.#bytesLeft = client.plan.authority === 'viewer' ? 0 : peers.scenario.inputBytes
  }

  start(): void {
    this.#schedule(BUSY_MS)
  }

  #schedule(withinMs: number): void {
    this.#scheduler.after(this.#scheduler.random.int(0, withinMs), () => this.#step())
  }

  #step(): void {
    const { kind } = this.#peers.scenario
    // A session without its driver would wait forever, so the other clients leave.
    if (kind === 'reap' && this.#peers.creator()?.isFinished === true) this.#client.detach()
    if (this.#client.isFinished) return
    this.#write()
    if (this.#isDriver) this.#drive()
    const isDone = this.#bytesLeft === 0 && this.#canEnd()
    if (isDone) this.#client.eof()
    // With `takes`, the end of input can be refused like any input, so it is sent again.
    const mayStop = kind !== 'takes' && kind !== 'reap' && this.#bytesLeft === 0
    if (mayStop && (isDone || !this.#isDriver)) return
    this.#schedule(this.#bytesLeft === 0 ? IDLE_MS : BUSY_MS)
  }

  #write(): void {
    if (this.#bytesLeft === 0 || !this.#client.session.canWrite) return
    const length = Math.min(this.#bytesLeft, this.#scheduler.random.int(1, 50))
    this.#bytesLeft -= length
    this.#client.write(length)
  }

  #drive(): void {
    const { random } = this.#scheduler
    if (random.chance(0.1)) this.#client.resize((this.#cols += 1))
    if (random.chance(0.1)) this.#client.signal(random.pick(['SIGUSR1', 'SIGUSR2']))
    if (this.#wantsLease() && random.chance(0.1)) this.#client.takeLease()
    if (this.#isSuccessor() && this.#client.session.role === 'viewer') this.#client.takeLease()
  }

  #wantsLease(): boolean {
    const { kind, faultsUntilMs } = this.#peers.scenario
    return kind === 'takes' && this.#scheduler.nowMs < faultsUntilMs
  }

  #isSuccessor(): boolean {
    return this.#peers.successor() === this.#client
  }

  /** Only the last driver ends the input: the creator, its successor or, with `takes`, the driver once faults have stopped. */
  #canEnd(): boolean {
    const { kind, faultsUntilMs } = this.#peers.scenario
    if (this.#client.session.role !== 'driver') return false
    if (kind === 'takes') return this.#scheduler.nowMs > faultsUntilMs
    return kind !== 'rejoin' || this.#isSuccessor()
  }
}
