import { limits, type Role } from '@sandwire/protocol'
import { type SimulationState, checkEnd, checkStep, findProcess } from './checks.ts'
import { Faults } from './faults.ts'
import type { InjectedBug } from './injected-bugs.ts'
import { drawScenario, type Scenario } from './scenario.ts'
import { type ClientPlan, type Relay, SimClient } from './sim-client.ts'
import { SimPlainClient } from './sim-plain-client.ts'
import { SimServer } from './sim-server.ts'
import { type Peers, SimUser } from './sim-user.ts'
import { Scheduler } from './scheduler.ts'

/** Virtual time in which everything must be delivered once faults have stopped. */
const SETTLE_MS = 3_600_000
/** A run with more events than this is considered stuck. */
const MAX_STEPS = 2_000_000
const FREEZE_MS = 60_000
const CREATE_ID = '00112233445566778899aabbccddeeff'
const INTRUDER_WRITER = 15

/** Statistics of a run. */
export interface SimulationResult {
  readonly seed: number
  readonly scenario: Scenario
  readonly steps: number
  readonly disconnects: number
  /** Connections that had to re-authorize soon after they opened. */
  readonly shortAuthorizations: number
}

class Simulation implements SimulationState, Peers {
  readonly scenario: Scenario
  readonly server: SimServer
  readonly clients: SimClient[] = []
  plain: SimPlainClient | undefined
  intruder: SimClient | undefined
  readonly #scheduler: Scheduler
  readonly #faults: Faults
  readonly #bug: InjectedBug

  constructor(seed: number, bug: InjectedBug) {
    this.#scheduler = new Scheduler(seed)
    this.#bug = bug
    this.scenario = drawScenario(this.#scheduler.random)
    const { options, process: plan } = this.scenario
    this.server = new SimServer(this.#scheduler, { options, plan, bug })
    this.server.onStep = () => checkStep(this)
    this.#faults = new Faults(this.#scheduler, this.scenario)
  }

  run(seed: number): SimulationResult {
    this.#startClients()
    this.#faults.start()
    this.#scheduler.after(this.scenario.eventAtMs, () => this.#event())
    const deadlineMs = this.scenario.faultsUntilMs + SETTLE_MS
    while (!this.#isDone() && this.#scheduler.step(deadlineMs)) {
      if (this.#scheduler.steps > MAX_STEPS) throw new Error('the run does not settle')
    }
    checkEnd(this)
    return {
      seed,
      scenario: this.scenario,
      steps: this.#scheduler.steps,
      disconnects: this.#faults.count,
      shortAuthorizations: this.#faults.shortAuthorizations,
    }
  }

  /** Starts the creator; the others join when a process runs. */
  #startClients(): void {
    const { roles, kind } = this.scenario
    roles.forEach((role, index) => {
      if (index === 0 && kind === 'plain') this.#startPlainClient()
      else this.#startClient(role, index + 1)
    })
  }

  #startClient(role: Role, writer: number): void {
    const client = this.#createClient(role, writer)
    this.clients.push(client)
    if (writer === 1) client.start()
    else this.#startWhenJoinable(client)
    new SimUser(this.#scheduler, client, this).start()
  }

  #createClient(role: Role, writer: number, plan: Partial<ClientPlan> = {}): SimClient {
    const { isPty, lagMs, network } = this.scenario
    const { random } = this.#scheduler
    return new SimClient({
      scheduler: this.#scheduler,
      server: this.server,
      relay: this.#relay(),
      bug: this.#bug,
      joins: () => (writer === 1 ? undefined : this.server.newest?.session.id),
      plan: {
        writer,
        createId: CREATE_ID,
        principal: 'p',
        authority: role,
        isPty,
        lagMs,
        network,
        options: {
          identity: identityOf(writer),
          windowBytes: random.pick([1, 100, limits.MAX_WINDOW_BYTES]),
          cols: 80,
          rows: 24,
          connectForMs: SETTLE_MS,
          retryForMs: SETTLE_MS,
          maxInputBytes: random.pick([1, 50, 100_000]),
        },
        ...plan,
      },
    })
  }

  #relay(): Relay {
    return {
      isUp: () => this.#faults.isUp(),
      opened: (connection) => this.#faults.opened(connection),
      drawAuthorization: () => this.#faults.drawAuthorization(),
    }
  }

  #startPlainClient(): void {
    const { isPty, network, inputBytes } = this.scenario
    const plain = new SimPlainClient(this.#scheduler, 1, {
      server: this.server,
      relay: this.#relay(),
      network,
      isPty,
      createId: CREATE_ID,
    })
    this.plain = plain
    plain.start()
    const { random } = this.#scheduler
    let left = inputBytes
    const step = (): void => {
      if (plain.isFinished) return
      const length = Math.min(left, random.int(1, 50))
      left -= length
      if (length > 0) plain.write(length)
      if (left === 0) plain.eof()
      else this.#scheduler.after(random.int(0, 300), step)
    }
    this.#scheduler.after(random.int(0, 300), step)
  }

  #startWhenJoinable(client: SimClient): void {
    this.#scheduler.after(this.#scheduler.random.int(1, 500), () => {
      const isCreatorFinished = this.plain?.isFinished ?? this.clients[0]?.isFinished ?? true
      if (findProcess(this.server) !== undefined) client.start()
      else if (!isCreatorFinished) this.#startWhenJoinable(client)
    })
  }

  /** Triggers the event of the scenario's kind. */
  #event(): void {
    const [creator] = this.clients
    if (creator === undefined || creator.isFinished) return
    switch (this.scenario.kind) {
      case 'freeze':
        creator.freeze(FREEZE_MS)
        return
      case 'rejoin':
        this.#rejoin(creator)
        return
      case 'intruder':
        this.#startIntruder(creator)
        return
      case 'common':
      case 'takes':
      case 'reap':
      case 'plain':
        return
    }
  }

  /** The creator detaches, and a new client takes over. */
  #rejoin(creator: SimClient): void {
    if (creator.status.kind !== 'attached') {
      this.#scheduler.after(100, () => this.#event())
      return
    }
    creator.detach()
    this.#startClient('driver', this.clients.length + 1)
  }

  #startIntruder(creator: SimClient): void {
    if (creator.session.session === undefined) {
      this.#scheduler.after(100, () => this.#event())
      return
    }
    const { options } = creator.plan
    this.intruder = this.#createClient('driver', INTRUDER_WRITER, { principal: 'q', options })
    this.intruder.start()
  }

  creator(): SimClient | undefined {
    return this.clients[0]
  }

  successor(): SimClient | undefined {
    const { kind, roles } = this.scenario
    return kind === 'rejoin' && this.clients.length > roles.length ? this.clients.at(-1) : undefined
  }

  /** Every client is done or has not connected. */
  #isFinished(): boolean {
    const isPlainFinished = this.plain?.isFinished ?? true
    const isIntruderFinished = this.intruder?.isFinished ?? true
    return (
      isPlainFinished &&
      isIntruderFinished &&
      this.clients.every((client) => client.isFinished || client.status.kind === 'connecting')
    )
  }

  #isDone(): boolean {
    const [creator] = this.clients
    const isCreatorFinished = this.plain?.isFinished ?? creator?.isFinished ?? true
    const hasNoSuccessor = this.scenario.kind !== 'rejoin' || creator?.status.kind !== 'detached'
    const hasSuccessorJoined = hasNoSuccessor || this.clients.at(-1)?.status.kind !== 'connecting'
    if (!isCreatorFinished || !hasSuccessorJoined || !this.#isFinished()) return false
    // A session without attachments terminates its process after its keep time and the kill timeouts.
    return findProcess(this.server)?.ended !== undefined || this.server.newest?.session.state.kind === 'gone'
  }
}

function identityOf(writer: number): string {
  return writer.toString(16).padStart(32, '0')
}

/** Runs one seed. Throws when an invariant breaks; the message has the command that repeats the run. */
export function simulate(seed: number, bug: InjectedBug = {}): SimulationResult {
  try {
    return new Simulation(seed, bug).run(seed)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const replay = `SANDWIRE_SEED=${seed} SANDWIRE_SEEDS=1 bun test packages/testing/src/simulator`
    throw new Error(`Simulation with seed ${seed} failed: ${why}\nReproduce with: ${replay}`, {
      cause: error,
    })
  }
}
