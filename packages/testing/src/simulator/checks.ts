import type { Role } from '@sandwire/protocol'
import type { Scenario } from './scenario.ts'
import type { SimClient } from './sim-client.ts'
import type { SimPlainClient } from './sim-plain-client.ts'
import type { ProcessInput, SimProcess } from './sim-process.ts'
import type { SimServer } from './sim-server.ts'

const RANK: Readonly<Record<Role, number>> = { viewer: 0, collaborator: 1, driver: 2 }

/** The parts of a run that the checks inspect. */
export interface SimulationState {
  readonly scenario: Scenario
  readonly server: SimServer
  /** The creator comes first, unless it is a plain client. */
  readonly clients: readonly SimClient[]
  readonly plain: SimPlainClient | undefined
  /** A client of another principal that presents the creator's attachment identity. */
  readonly intruder: SimClient | undefined
}

/** Checks the invariants that hold after every step. */
export function checkStep({ scenario, server, clients, intruder }: SimulationState): void {
  const { options, process: plan } = scenario
  const { limits } = options
  if (server.spawns > 1) throw new Error('a retried create spawned twice')
  if (intruder?.status.kind === 'attached') throw new Error('another principal resumed an attachment')
  for (const { session } of server.sessions.values()) {
    const { log, attachments } = session
    let drivers = 0
    for (const attachment of attachments.all()) {
      if (RANK[attachment.role] > RANK[attachment.authority])
        throw new Error('an attachment has a role above its authority')
      if (attachment.role === 'driver') drivers += 1
      if ((attachment.role === 'driver') !== (attachment.id === attachments.lease.holder))
        throw new Error('an attachment is driver without the lease, or holds the lease without being driver')
      if (attachment.acked > attachment.sentMax) throw new Error('the client acknowledged more than was sent')
      const unsettled = attachment.inputAccepted - attachment.inputSettled
      const isPlain = attachment.dialect === 'plain'
      if (!isPlain && unsettled > limits.inputWindowBytes)
        throw new Error('the session holds more input than its window allows')
      const client = clients.find(({ plan: { options: own } }) => own.identity === attachment.identity)
      if (client === undefined) continue
      if (client.session.received > attachment.sentMax)
        throw new Error('the client received more than was sent')
      if (attachment.acked > client.session.received)
        throw new Error('the client acknowledged more than it received')
    }
    if (drivers > 1) throw new Error('the session has two drivers')
    const bound = Math.max(limits.logBytes, limits.window.maxBytes) + plan.maxChunkBytes
    if (log.end - log.start > bound)
      throw new Error(`the log holds ${log.end - log.start} bytes, the limit is ${bound}`)
  }
}

/** Checks the invariants that hold when the run is over. */
export function checkEnd(state: SimulationState): void {
  const process = findProcess(state.server)
  if (process === undefined) {
    if (mayBeReaped(state.scenario)) return
    throw new Error('no process was started')
  }
  if (process.ended === undefined) throw new Error(`the process was left running: ${describe(state)}`)
  if (!mayBeReaped(state.scenario)) checkExit(process, state.scenario)
  for (const client of state.clients) checkClient(state, client, process)
  if (state.plain !== undefined) checkPlain(state.plain, process)
  checkControls(state, process)
  checkFreeze(state, process)
}

/** The state of every client and of the session, for the failure message. */
function describe({ clients, plain, server }: SimulationState): string {
  const states = clients.map(({ plan, status, session }) => `${plan.writer} ${status.kind} ${session.role}`)
  if (plain !== undefined) states.push(`plain ${plain.status.kind}`)
  const session = server.newest?.session
  return `${states.join(', ')}; session ${session?.state.kind}${session?.isPaused === true ? ' paused' : ''}`
}

export function findProcess(server: SimServer): SimProcess | undefined {
  for (const { process } of server.sessions.values()) if (process !== undefined) return process
  return undefined
}

/** Scenarios in which the session may end before its program does. */
function mayBeReaped({ kind }: Scenario): boolean {
  return kind === 'reap' || kind === 'plain'
}

function checkExit({ ended }: SimProcess, { process: plan }: Scenario): void {
  if (ended?.exit.code !== plan.exit.code || ended.exit.signal !== plan.exit.signal)
    throw new Error('the process was killed')
}

function checkClient(state: SimulationState, client: SimClient, process: SimProcess): void {
  const { status, plan } = client
  const isCreator = plan.writer === 1
  const hasNotJoined = status.kind === 'connecting' && !isCreator
  if (status.kind === 'detached' || hasNotJoined || isRefused(state, client)) {
    checkInput(client, process)
    return
  }
  if (status.kind !== 'exited') {
    const why = status.kind === 'failed' ? `: ${status.error.code} ${status.error.message}` : ''
    throw new Error(`client ${plan.writer} is ${status.kind}${why}, received ${client.position}`)
  }
  const { exit } = process.ended ?? { exit: undefined }
  if (status.exit.code !== exit?.code || status.exit.signal !== exit?.signal) throw new Error('wrong exit')
  if (status.exit.truncated !== exit?.truncated) throw new Error('wrong exit: truncated')
  if (client.position !== process.written) throw new Error('the exit arrived before all output')
  if (isLossless(state.scenario, client) && client.gaps > 0)
    throw new Error(`a lossless driver has gaps of ${client.gaps} bytes`)
  checkInput(client, process)
  if (hasReadAll(state, client, process)) checkInputComplete(client, process)
}

/** A client that joins after the session ended is refused; while the session lives, no client is. */
function isRefused({ scenario }: SimulationState, { status, plan }: SimClient): boolean {
  if (status.kind !== 'failed') return false
  if (mayBeReaped(scenario))
    return ['session_gone', 'resume_lost', 'session_ended'].includes(status.error.code)
  return plan.writer > 1 && status.error.code === 'session_gone'
}

/** A client that was driver throughout gets every byte of a session with `overflow: block`. */
function isLossless({ kind, options }: Scenario, client: SimClient): boolean {
  return client.plan.writer === 1 && kind !== 'takes' && options.overflow === 'block'
}

/** The input bytes of one writer that the process received. */
function inputOf(writer: number, applied: readonly ProcessInput[]): number[] {
  const got: number[] = []
  for (const input of applied) {
    if (input.kind === 'bytes') for (const byte of input.bytes) if (byte >> 4 === writer) got.push(byte)
  }
  return got
}

/** The process received a prefix of what the writer sent. */
function checkInput(client: SimClient, process: SimProcess): void {
  inputOf(client.plan.writer, process.applied).forEach((byte, index) => {
    if (byte !== client.expected[index])
      throw new Error(`writer ${client.plan.writer}: wrong input byte ${index}`)
  })
}

/** The process read this client's input to its end. */
function hasReadAll({ scenario }: SimulationState, client: SimClient, process: SimProcess): boolean {
  const isKilled = process.ended?.exit.signal === 'SIGKILL'
  return (
    scenario.process.waitsForEof &&
    client.hasEof &&
    scenario.kind !== 'takes' &&
    !process.isInputClosed &&
    !isKilled
  )
}

function checkInputComplete(client: SimClient, process: SimProcess): void {
  const got = inputOf(client.plan.writer, process.applied).length
  if (got !== client.expected.length) throw new Error(`input is missing: ${got} of ${client.expected.length}`)
}

/** A plain client gets every byte and the exit, or was disconnected and its process was terminated. */
function checkPlain(plain: SimPlainClient, process: SimProcess): void {
  inputOf(plain.writer, process.applied).forEach((byte, index) => {
    if (byte !== plain.expected[index]) throw new Error(`plain: wrong input byte ${index}`)
  })
  if (plain.status.kind === 'disconnected') return
  if (plain.status.kind !== 'exited') throw new Error(`a plain client is ${plain.status.kind}`)
  if (plain.position !== process.written) throw new Error('plain: the exit arrived before all output')
  const { exit } = process.ended ?? { exit: undefined }
  const code = exit?.code ?? (exit?.signal === 'SIGTERM' ? 143 : 137)
  if (plain.status.exit.code !== code || plain.status.exit.signal !== (exit?.signal ?? undefined))
    throw new Error('plain: wrong exit')
}

/** With a single driver, its control messages are applied once, in order and at their input offset. */
function checkControls({ clients, scenario }: SimulationState, { applied, isInputClosed }: SimProcess): void {
  const creator = clients.find(({ plan }) => plan.writer === 1)
  const hasLaterDrivers = scenario.kind === 'reap' && scenario.roles.lastIndexOf('driver') > 0
  const hasOtherDrivers = scenario.kind === 'takes' || scenario.kind === 'rejoin' || hasLaterDrivers
  if (creator === undefined || hasOtherDrivers || isInputClosed) return
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
      ({ kind }) => (kind === 'signal') === isSignal && (scenario.isPty || kind !== 'resize'),
    )
    const got = seen.filter(({ kind }) => (kind === 'signal') === isSignal)
    got.forEach((control, index) => {
      if (JSON.stringify(control) === JSON.stringify(wanted[index])) return
      throw new Error(
        `control ${index} was ${JSON.stringify(control)}, expected ${JSON.stringify(wanted[index])}`,
      )
    })
  }
}

/** With `overflow: trim`, a driver that stops reading does not hold the process back. */
function checkFreeze({ scenario, clients }: SimulationState, { ended }: SimProcess): void {
  const { kind, process: plan, options, faultsUntilMs, eventAtMs } = scenario
  const isCalm = kind === 'freeze' && faultsUntilMs === 0 && !plan.waitsForEof && plan.paceMs <= 1
  if (!isCalm || options.overflow !== 'trim' || options.limits.outputBytesPerSecond > 0) return
  const writesMs = plan.totalBytes * (plan.paceMs + 1)
  const latestMs = eventAtMs + options.limits.stallMs + writesMs + 5_000
  if (ended === undefined || ended.atMs > latestMs)
    throw new Error(`a frozen driver held the process back until ${ended?.atMs}`)
  const creator = clients[0]
  if (creator !== undefined && creator.gaps > 0 && scenario.isPty && creator.screens === 0)
    throw new Error('a gap was not followed by a snapshot')
}
