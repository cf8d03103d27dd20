import { limits, type Role } from '@sandwire/protocol'
import { type Cast, checkEnd, checkStep, findProcess } from './checks.ts'
import { Faults } from './faults.ts'
import type { Sabotage } from './sabotage.ts'
import { drawScenario, type Scenario } from './scenario.ts'
import { type ClientPlan, type Relay, SimClient } from './sim-client.ts'
import { SimPlainClient } from './sim-plain-client.ts'
import { SimServer } from './sim-server.ts'
import { type Company, Typist } from './typist.ts'
import { World } from './world.ts'

/** Virtual time in which everything must be delivered once faults have stopped. */
const SETTLE_MS = 3_600_000
/** A run that takes more events than this is stuck in a loop. */
const MAX_STEPS = 2_000_000
const FREEZE_MS = 60_000
const CREATE_ID = '00112233445566778899aabbccddeeff'
const INTRUDER_WRITER = 15

/** What a run did, for curiosity and for tests of the simulator itself. */
export interface SimulationResult {
  readonly seed: number
  readonly scenario: Scenario
  readonly steps: number
  readonly cuts: number
  /** Connections that had to show their right again after a moment. */
  readonly stays: number
}

class Simulation implements Cast, Company {
  readonly scenario: Scenario
  readonly server: SimServer
  readonly clients: SimClient[] = []
  plain: SimPlainClient | undefined
  intruder: SimClient | undefined
  readonly #world: World
  readonly #faults: Faults
  readonly #sabotage: Sabotage

  constructor(seed: number, sabotage: Sabotage) {
    this.#world = new World(seed)
    this.#sabotage = sabotage
    this.scenario = drawScenario(this.#world.random)
    const { options, process: plan } = this.scenario
    this.server = new SimServer(this.#world, { options, plan, sabotage })
    this.server.onStep = () => checkStep(this)
    this.#faults = new Faults(this.#world, this.scenario)
  }

  run(seed: number): SimulationResult {
    this.#enter()
    this.#faults.start()
    this.#world.after(this.scenario.eventAtMs, () => this.#event())
    const deadlineMs = this.scenario.faultsUntilMs + SETTLE_MS
    while (!this.#isDone() && this.#world.step(deadlineMs)) {
      if (this.#world.steps > MAX_STEPS) throw new Error('does not settle')
    }
    checkEnd(this)
    return {
      seed,
      scenario: this.scenario,
      steps: this.#world.steps,
      cuts: this.#faults.count,
      stays: this.#faults.stays,
    }
  }

  /** The creator starts, the others follow when there is something to join. */
  #enter(): void {
    const { roles, theme } = this.scenario
    roles.forEach((role, index) => {
      if (index === 0 && theme === 'plain') this.#enterPlain()
      else this.#enterClient(role, index + 1)
    })
  }

  #enterClient(role: Role, writer: number): void {
    const client = this.#createClient(role, writer)
    this.clients.push(client)
    if (writer === 1) client.start()
    else this.#startWhenJoinable(client)
    new Typist(this.#world, client, this).start()
  }

  #createClient(role: Role, writer: number, plan: Partial<ClientPlan> = {}): SimClient {
    const { isPty, lagMs, weather } = this.scenario
    const { random } = this.#world
    return new SimClient({
      world: this.#world,
      server: this.server,
      relay: this.#relay(),
      sabotage: this.#sabotage,
      joins: () => (writer === 1 ? undefined : this.server.newest?.session.id),
      plan: {
        writer,
        createId: CREATE_ID,
        principal: 'p',
        authority: role,
        isPty,
        lagMs,
        weather,
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
      opened: (link) => this.#faults.opened(link),
      stay: () => this.#faults.stay(),
    }
  }

  #enterPlain(): void {
    const { isPty, weather, inputBytes } = this.scenario
    const plain = new SimPlainClient(this.#world, 1, {
      server: this.server,
      relay: this.#relay(),
      weather,
      isPty,
      createId: CREATE_ID,
    })
    this.plain = plain
    plain.start()
    const { random } = this.#world
    let left = inputBytes
    const step = (): void => {
      if (plain.isOver) return
      const length = Math.min(left, random.int(1, 50))
      left -= length
      if (length > 0) plain.write(length)
      if (left === 0) plain.eof()
      else this.#world.after(random.int(0, 300), step)
    }
    this.#world.after(random.int(0, 300), step)
  }

  #startWhenJoinable(client: SimClient): void {
    this.#world.after(this.#world.random.int(1, 500), () => {
      const isCreatorOver = this.plain?.isOver ?? this.clients[0]?.isOver ?? true
      if (findProcess(this.server) !== undefined) client.start()
      else if (!isCreatorOver) this.#startWhenJoinable(client)
    })
  }

  /** What the scenario is about, besides faults. */
  #event(): void {
    const [creator] = this.clients
    if (creator === undefined || creator.isOver) return
    switch (this.scenario.theme) {
      case 'freeze':
        creator.freeze(FREEZE_MS)
        return
      case 'rejoin':
        this.#rejoin(creator)
        return
      case 'intruder':
        this.#intrude(creator)
        return
      case 'common':
      case 'takes':
      case 'reap':
      case 'plain':
        return
    }
  }

  /** The creator leaves for good, and somebody new takes its place. */
  #rejoin(creator: SimClient): void {
    if (creator.status.is !== 'attached') {
      this.#world.after(100, () => this.#event())
      return
    }
    creator.detach()
    this.#enterClient('driver', this.clients.length + 1)
  }

  #intrude(creator: SimClient): void {
    if (creator.session.session === undefined) {
      this.#world.after(100, () => this.#event())
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
    const { theme, roles } = this.scenario
    return theme === 'rejoin' && this.clients.length > roles.length ? this.clients.at(-1) : undefined
  }

  /** No client is left that could do anything. */
  #isOver(): boolean {
    const isPlainOver = this.plain?.isOver ?? true
    const isIntruderOver = this.intruder?.isOver ?? true
    return (
      isPlainOver &&
      isIntruderOver &&
      this.clients.every((client) => client.isOver || client.status.is === 'connecting')
    )
  }

  #isDone(): boolean {
    const [creator] = this.clients
    const isCreatorOver = this.plain?.isOver ?? creator?.isOver ?? true
    const isReplaced = this.scenario.theme !== 'rejoin' || creator?.status.is !== 'detached'
    const hasLastCome = isReplaced || this.clients.at(-1)?.status.is !== 'connecting'
    if (!isCreatorOver || !hasLastCome || !this.#isOver()) return false
    // A session without anybody ends its process, within its keep and the kill ladder.
    return findProcess(this.server)?.ended !== undefined || this.server.newest?.session.state.is === 'gone'
  }
}

function identityOf(writer: number): string {
  return writer.toString(16).padStart(32, '0')
}

/** Runs one seed; throws when an invariant breaks, with the way to run it again in the message. */
export function simulate(seed: number, sabotage: Sabotage = {}): SimulationResult {
  try {
    return new Simulation(seed, sabotage).run(seed)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const replay = `SANDWIRE_SEED=${seed} SANDWIRE_SEEDS=1 bun test packages/testing/src/simulator`
    throw new Error(`Simulation with seed ${seed} failed: ${why}\nrun it again: ${replay}`, { cause: error })
  }
}
