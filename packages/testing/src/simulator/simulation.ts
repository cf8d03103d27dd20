import { limits, type Role } from '@sandwire/protocol'
import { drawScenario, type Scenario } from './scenario.ts'
import { SimClient } from './sim-client.ts'
import type { SimLink } from './sim-link.ts'
import type { ProcessInput } from './sim-process.ts'
import { SimServer } from './sim-server.ts'
import { World } from './world.ts'

/** Virtual time in which everything must be delivered once faults have stopped. */
const SETTLE_MS = 3_600_000
/** A run that takes more events than this is stuck in a loop. */
const MAX_STEPS = 2_000_000
const CREATE_ID = '00112233445566778899aabbccddeeff'
const RANK: Readonly<Record<Role, number>> = { viewer: 0, collaborator: 1, driver: 2 }

/** What a run did, for curiosity and for tests of the simulator itself. */
export interface SimulationResult {
  readonly seed: number
  readonly scenario: Scenario
  readonly steps: number
  readonly cuts: number
}

class Simulation {
  readonly #world: World
  readonly #scenario: Scenario
  readonly #server: SimServer
  readonly #clients: SimClient[]
  #links: SimLink[] = []
  #downUntilMs = 0
  #cuts = 0

  constructor(seed: number) {
    this.#world = new World(seed)
    this.#scenario = drawScenario(this.#world.random)
    this.#server = new SimServer(this.#world, this.#scenario.options, this.#scenario.process)
    this.#server.onStep = () => this.#checkInvariants()
    this.#clients = this.#scenario.roles.map((role, index) => this.#createClient(role, index))
  }

  run(seed: number): SimulationResult {
    const { random } = this.#world
    const [creator, ...others] = this.#clients
    creator?.start()
    for (const other of others) this.#startWhenJoinable(other)
    this.#clients.forEach((client, index) => this.#scheduleInput(client, index))
    this.#world.after(random.int(0, this.#scenario.faultEveryMs), () => this.#fault())
    const deadlineMs = this.#scenario.faultsUntilMs + SETTLE_MS
    while (!this.#isDone() && this.#world.step(deadlineMs)) {
      if (this.#world.steps > MAX_STEPS) throw new Error('does not settle')
    }
    this.#checkEnd()
    return { seed, scenario: this.#scenario, steps: this.#world.steps, cuts: this.#cuts }
  }

  #createClient(role: Role, index: number): SimClient {
    const { random } = this.#world
    const joins = (): string | undefined => (index === 0 ? undefined : this.#clients[0]?.session.session)
    return new SimClient({
      world: this.#world,
      server: this.#server,
      relay: {
        isUp: () => this.#world.nowMs >= this.#downUntilMs,
        opened: (link) => this.#opened(link),
      },
      joins,
      plan: {
        writer: index + 1,
        createId: CREATE_ID,
        principal: 'p',
        authority: role,
        take: false,
        isPty: this.#scenario.isPty,
        lagMs: this.#scenario.lagMs,
        weather: this.#scenario.weather,
        options: {
          identity: (index + 1).toString(16).padStart(32, '0'),
          windowBytes: random.pick([1, 100, limits.MAX_WINDOW_BYTES]),
          cols: 80,
          rows: 24,
          connectForMs: SETTLE_MS,
          retryForMs: SETTLE_MS,
          maxInputBytes: random.pick([1, 50, 100_000]),
        },
      },
    })
  }

  #startWhenJoinable(client: SimClient): void {
    this.#world.after(this.#world.random.int(1, 500), () => {
      const creator = this.#clients[0]
      if (creator?.isOver === true) return
      if (creator?.session.session === undefined) this.#startWhenJoinable(client)
      else client.start()
    })
  }

  /** Each client writes in pieces at random times; the creator may end its input, and signals and resizes in between. */
  #scheduleInput(client: SimClient, index: number): void {
    const { random } = this.#world
    const isWriter = client.plan.authority !== 'viewer'
    let left = isWriter ? this.#scenario.inputBytes : 0
    let cols = 100
    const step = (): void => {
      if (client.isOver) return
      if (left > 0 && client.session.canWrite) {
        const length = Math.min(left, random.int(1, 50))
        left -= length
        client.write(length)
      }
      if (client.plan.authority === 'driver' && random.chance(0.1)) client.resize((cols += 1))
      if (client.plan.authority === 'driver' && random.chance(0.1))
        client.signal(random.pick(['SIGUSR1', 'SIGUSR2']))
      if (this.#mayTake(client) && random.chance(0.1)) client.takeLease()
      const isDone = left === 0 && this.#canEof(client, index)
      if (isDone) client.eof()
      // With takes, an end of input can be refused like any input, so it is said again.
      if (!isDone || this.#scenario.hasTakes) this.#world.after(random.int(0, isDone ? 5_000 : 300), step)
    }
    this.#world.after(random.int(0, 300), step)
  }

  #mayTake(client: SimClient): boolean {
    const { hasTakes, faultsUntilMs } = this.#scenario
    return hasTakes && client.plan.authority === 'driver' && this.#world.nowMs < faultsUntilMs
  }

  /** End of input is the creator's, or with takes whoever drives once faults are over. */
  #canEof(client: SimClient, index: number): boolean {
    if (!this.#scenario.hasTakes) return index !== 0 || client.session.role === 'driver'
    return client.session.role === 'driver' && this.#world.nowMs > this.#scenario.faultsUntilMs
  }

  #opened(link: SimLink): void {
    this.#links = this.#links.filter((open) => open.isOpen)
    this.#links.push(link)
    const { random, nowMs } = this.#world
    // A reply to create or resume is lost now and then.
    if (nowMs < this.#scenario.faultsUntilMs && random.chance(0.15))
      this.#world.after(random.int(0, 60), () => this.#cut(link))
  }

  #cut(link: SimLink): void {
    this.#cuts += 1
    link.cut()
  }

  #fault(): void {
    const { random, nowMs } = this.#world
    if (nowMs >= this.#scenario.faultsUntilMs) {
      // Nothing stays swallowed for ever: a black-holed link is found dead by its ends.
      return
    }
    const open = this.#links.filter((link) => link.isOpen)
    const kind = random.int(0, 9)
    if (kind === 0) {
      this.#downUntilMs = nowMs + random.int(0, 3_000)
      for (const link of open) this.#cut(link)
    } else if (kind === 1 && open.length > 0) random.pick(open).blackHole()
    else if (open.length > 0) this.#cut(random.pick(open))
    this.#world.after(random.int(0, this.#scenario.faultEveryMs), () => this.#fault())
  }

  #isDone(): boolean {
    return (
      this.#clients.every((client) => client.isOver || client.status.is === 'connecting') &&
      this.#clients[0]?.isOver === true
    )
  }

  #checkInvariants(): void {
    const { options, process: plan } = this.#scenario
    if (this.#server.spawns > 1) throw new Error('a retried create spawned twice')
    for (const { session } of this.#server.sessions.values()) {
      const { log, roster } = session
      let drivers = 0
      for (const attachment of roster.all()) {
        if (RANK[attachment.role] > RANK[attachment.authority])
          throw new Error('a role rose above its authority')
        if (attachment.role === 'driver') drivers += 1
        if (attachment.acked > attachment.sentMax) throw new Error('acknowledged more than was sent')
        const unsettled = attachment.inputAccepted - attachment.inputSettled
        if (unsettled > options.limits.inputWindowBytes)
          throw new Error('more input is held than was granted')
        const client = this.#clients.find(
          ({ plan: { options: own } }) => own.identity === attachment.identity,
        )
        if (client !== undefined && client.session.received > attachment.sentMax)
          throw new Error('received more than was sent')
        if (client !== undefined && attachment.acked > client.session.received)
          throw new Error('acknowledged more than was received')
      }
      if (drivers > 1) throw new Error('two drivers')
      const bound = Math.max(options.limits.logBytes, options.limits.window.maxBytes) + plan.maxChunkBytes
      if (log.end - log.start > bound) throw new Error(`log holds ${log.end - log.start}, bound is ${bound}`)
    }
  }

  #checkEnd(): void {
    const process = [...this.#server.sessions.values()]
      .map((hosted) => hosted.process)
      .find((found) => found !== undefined)
    if (process === undefined) throw new Error('nothing was started')
    for (const client of this.#clients) this.#checkClientEnd(client, process.applied)
    this.#checkControls(process.applied)
  }

  #checkClientEnd(client: SimClient, applied: readonly ProcessInput[]): void {
    const { status, plan } = client
    if (status.is === 'connecting' && plan.writer > 1) return
    const mayMiss = plan.writer > 1 && status.is === 'failed' && status.error.code === 'session_gone'
    if (mayMiss) return
    if (status.is !== 'exited') {
      const why = status.is === 'failed' ? `: ${status.error.code} ${status.error.message}` : ''
      throw new Error(`client ${plan.writer} is ${status.is}${why}, received ${client.position}`)
    }
    const { code, signal } = this.#scenario.process.exit
    if (status.exit.code !== code || status.exit.signal !== signal) throw new Error('wrong exit')
    if (client.position !== this.#scenario.process.totalBytes) throw new Error('output is missing at exit')
    if (this.#isLossless(client) && client.gaps > 0) throw new Error(`a driver lost ${client.gaps} bytes`)
    this.#checkInput(client, applied)
  }

  /** A driver that always drove and whose session blocks gets every byte. */
  #isLossless(client: SimClient): boolean {
    return client.plan.writer === 1 && !this.#scenario.hasTakes && this.#scenario.options.overflow === 'block'
  }

  /** What the process got from a writer is what the writer sent: all of it if the process read to the end, else a prefix. */
  #checkInput(client: SimClient, applied: readonly ProcessInput[]): void {
    const got: number[] = []
    for (const input of applied) {
      if (input.kind === 'bytes')
        for (const byte of input.bytes) if (byte >> 4 === client.plan.writer) got.push(byte)
    }
    got.forEach((byte, index) => {
      if (byte !== client.expected[index])
        throw new Error(`writer ${client.plan.writer}: wrong input byte ${index}`)
    })
    const hasReadAll =
      this.#scenario.process.waitsForEof && client.plan.writer === 1 && !this.#scenario.hasTakes
    if (hasReadAll && got.length !== client.expected.length) {
      throw new Error(`input is missing: ${got.length} of ${client.expected.length}`)
    }
  }

  /** Without changes of hands, the creator's control messages are applied once, in order, and in place. */
  #checkControls(applied: readonly ProcessInput[]): void {
    const creator = this.#clients[0]
    if (creator === undefined || this.#scenario.hasTakes) return
    let bytes = 0
    const seen: { kind: string; value: string; at: number }[] = []
    for (const input of applied) {
      if (input.kind === 'bytes') bytes += input.bytes.filter((byte) => byte >> 4 === 1).length
      else if (input.kind === 'resize') seen.push({ kind: 'resize', value: String(input.cols), at: bytes })
      else if (input.kind === 'eof') seen.push({ kind: 'eof', value: '', at: bytes })
      else seen.push({ kind: 'signal', value: input.signal, at: 0 })
    }
    for (const isSignal of [true, false]) {
      const wanted = creator.issued.filter(
        ({ kind }) => (kind === 'signal') === isSignal && (this.#scenario.isPty || kind !== 'resize'),
      )
      const got = seen.filter(({ kind }) => (kind === 'signal') === isSignal)
      got.forEach((control, index) => {
        if (JSON.stringify(control) !== JSON.stringify(wanted[index])) {
          throw new Error(
            `control ${index} was ${JSON.stringify(control)}, expected ${JSON.stringify(wanted[index])}`,
          )
        }
      })
    }
  }
}

/** Runs one seed; throws when an invariant breaks, with the seed in the message. */
export function simulate(seed: number): SimulationResult {
  try {
    return new Simulation(seed).run(seed)
  } catch (error) {
    throw new Error(
      `Simulation with seed ${seed} failed: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    )
  }
}
