import type { Role } from '@sandwire/protocol'
import type { Scenario } from './scenario.ts'
import type { SimClient } from './sim-client.ts'
import type { SimPlainClient } from './sim-plain-client.ts'
import type { ProcessInput, SimProcess } from './sim-process.ts'
import type { SimServer } from './sim-server.ts'

const RANK: Readonly<Record<Role, number>> = { viewer: 0, collaborator: 1, driver: 2 }

/** What a run is judged by. */
export interface Cast {
  readonly scenario: Scenario
  readonly server: SimServer
  /** The creator first, unless it is a plain one. */
  readonly clients: readonly SimClient[]
  readonly plain: SimPlainClient | undefined
  /** Somebody who presents the creator's secret. */
  readonly intruder: SimClient | undefined
}

/** What must hold after every step. */
export function checkStep({ scenario, server, clients, intruder }: Cast): void {
  const { options, process: plan } = scenario
  const { limits } = options
  if (server.spawns > 1) throw new Error('a retried create spawned twice')
  if (intruder?.status.is === 'attached') throw new Error('somebody else resumed an attachment')
  for (const { session } of server.sessions.values()) {
    const { log, attachments } = session
    let drivers = 0
    for (const attachment of attachments.all()) {
      if (RANK[attachment.role] > RANK[attachment.authority])
        throw new Error('a role rose above its authority')
      if (attachment.role === 'driver') drivers += 1
      if ((attachment.role === 'driver') !== (attachment.id === attachments.lease.holder))
        throw new Error('a driver without the lease')
      if (attachment.acked > attachment.sentMax) throw new Error('acknowledged more than was sent')
      const unsettled = attachment.inputAccepted - attachment.inputSettled
      const isPlain = attachment.dialect === 'plain'
      if (!isPlain && unsettled > limits.inputWindowBytes)
        throw new Error('more input is held than was granted')
      const client = clients.find(({ plan: { options: own } }) => own.identity === attachment.identity)
      if (client === undefined) continue
      if (client.session.received > attachment.sentMax) throw new Error('received more than was sent')
      if (attachment.acked > client.session.received) throw new Error('acknowledged more than was received')
    }
    if (drivers > 1) throw new Error('two drivers')
    const bound = Math.max(limits.logBytes, limits.window.maxBytes) + plan.maxChunkBytes
    if (log.end - log.start > bound) throw new Error(`log holds ${log.end - log.start}, bound is ${bound}`)
  }
}

/** What must hold once everything has come to rest. */
export function checkEnd(cast: Cast): void {
  const process = findProcess(cast.server)
  if (process === undefined) {
    if (mayBeReaped(cast.scenario)) return
    throw new Error('nothing was started')
  }
  if (process.ended === undefined) throw new Error(`the process was left running: ${describe(cast)}`)
  if (!mayBeReaped(cast.scenario)) checkExit(process, cast.scenario)
  for (const client of cast.clients) checkClient(cast, client, process)
  if (cast.plain !== undefined) checkPlain(cast.plain, process)
  checkControls(cast, process)
  checkFreeze(cast, process)
}

/** Who was where, for whoever reads a failure. */
function describe({ clients, plain, server }: Cast): string {
  const people = clients.map(({ plan, status, session }) => `${plan.writer} ${status.is} ${session.role}`)
  if (plain !== undefined) people.push(`plain ${plain.status.is}`)
  const session = server.newest?.session
  return `${people.join(', ')}; session ${session?.state.is}${session?.isPaused === true ? ' paused' : ''}`
}

export function findProcess(server: SimServer): SimProcess | undefined {
  for (const { process } of server.sessions.values()) if (process !== undefined) return process
  return undefined
}

/** Themes in which the session may end before its program does. */
function mayBeReaped({ theme }: Scenario): boolean {
  return theme === 'reap' || theme === 'plain'
}

function checkExit({ ended }: SimProcess, { process: plan }: Scenario): void {
  if (ended?.exit.code !== plan.exit.code || ended.exit.signal !== plan.exit.signal)
    throw new Error('the process was killed')
}

function checkClient(cast: Cast, client: SimClient, process: SimProcess): void {
  const { status, plan } = client
  const isCreator = plan.writer === 1
  const hasNotCome = status.is === 'connecting' && !isCreator
  if (status.is === 'detached' || hasNotCome || isTurnedAway(cast, client)) {
    checkInput(client, process)
    return
  }
  if (status.is !== 'exited') {
    const why = status.is === 'failed' ? `: ${status.error.code} ${status.error.message}` : ''
    throw new Error(`client ${plan.writer} is ${status.is}${why}, received ${client.position}`)
  }
  const { exit } = process.ended ?? { exit: undefined }
  if (status.exit.code !== exit?.code || status.exit.signal !== exit?.signal) throw new Error('wrong exit')
  if (status.exit.truncated !== exit?.truncated) throw new Error('wrong exit: truncated')
  if (client.position !== process.written) throw new Error('output is missing at exit')
  if (isLossless(cast.scenario, client) && client.gaps > 0)
    throw new Error(`a driver lost ${client.gaps} bytes`)
  checkInput(client, process)
  if (hasReadAll(cast, client, process)) checkInputComplete(client, process)
}

/** Whoever comes too late finds nothing, and is told so; nobody is told so while the session lives. */
function isTurnedAway({ scenario }: Cast, { status, plan }: SimClient): boolean {
  if (status.is !== 'failed') return false
  if (mayBeReaped(scenario))
    return ['session_gone', 'resume_lost', 'session_ended'].includes(status.error.code)
  return plan.writer > 1 && status.error.code === 'session_gone'
}

/** A driver that always drove and whose session blocks gets every byte. */
function isLossless({ theme, options }: Scenario, client: SimClient): boolean {
  return client.plan.writer === 1 && theme !== 'takes' && options.overflow === 'block'
}

/** Bytes of one writer that the process got. */
function inputOf(writer: number, applied: readonly ProcessInput[]): number[] {
  const got: number[] = []
  for (const input of applied) {
    if (input.kind === 'bytes') for (const byte of input.bytes) if (byte >> 4 === writer) got.push(byte)
  }
  return got
}

/** What the process got from a writer is the beginning of what the writer sent. */
function checkInput(client: SimClient, process: SimProcess): void {
  inputOf(client.plan.writer, process.applied).forEach((byte, index) => {
    if (byte !== client.expected[index])
      throw new Error(`writer ${client.plan.writer}: wrong input byte ${index}`)
  })
}

/** The process waited for the end of this client's input. */
function hasReadAll({ scenario }: Cast, client: SimClient, process: SimProcess): boolean {
  const isKilled = process.ended?.exit.signal === 'SIGKILL'
  return (
    scenario.process.waitsForEof &&
    client.hasEof &&
    scenario.theme !== 'takes' &&
    !process.isInputClosed &&
    !isKilled
  )
}

function checkInputComplete(client: SimClient, process: SimProcess): void {
  const got = inputOf(client.plan.writer, process.applied).length
  if (got !== client.expected.length) throw new Error(`input is missing: ${got} of ${client.expected.length}`)
}

/** A plain client gets every byte and the exit, or its connection broke and the process was ended. */
function checkPlain(plain: SimPlainClient, process: SimProcess): void {
  inputOf(plain.writer, process.applied).forEach((byte, index) => {
    if (byte !== plain.expected[index]) throw new Error(`plain: wrong input byte ${index}`)
  })
  if (plain.status.is === 'cut') return
  if (plain.status.is !== 'exited') throw new Error(`a plain client is ${plain.status.is}`)
  if (plain.position !== process.written) throw new Error('plain: output is missing at exit')
  const { exit } = process.ended ?? { exit: undefined }
  const code = exit?.code ?? (exit?.signal === 'SIGTERM' ? 143 : 137)
  if (plain.status.exit.code !== code || plain.status.exit.signal !== (exit?.signal ?? undefined))
    throw new Error('plain: wrong exit')
}

/** Without changes of hands, the creator's control messages are applied once, in order, and in place. */
function checkControls({ clients, scenario }: Cast, { applied, isInputClosed }: SimProcess): void {
  const creator = clients.find(({ plan }) => plan.writer === 1)
  const hasHeirs = scenario.theme === 'reap' && scenario.roles.lastIndexOf('driver') > 0
  const hasOtherDrivers = scenario.theme === 'takes' || scenario.theme === 'rejoin' || hasHeirs
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

/** While its driver is frozen, the program of a trimming session runs on; that of a blocking one waits. */
function checkFreeze({ scenario, clients }: Cast, { ended }: SimProcess): void {
  const { theme, process: plan, options, faultsUntilMs, eventAtMs } = scenario
  const isCalm = theme === 'freeze' && faultsUntilMs === 0 && !plan.waitsForEof && plan.paceMs <= 1
  if (!isCalm || options.overflow !== 'trim' || options.limits.outputBytesPerSecond > 0) return
  const writesMs = plan.totalBytes * (plan.paceMs + 1)
  const latestMs = eventAtMs + options.limits.stallMs + writesMs + 5_000
  if (ended === undefined || ended.atMs > latestMs)
    throw new Error(`a frozen driver held the program back until ${ended?.atMs}`)
  const creator = clients[0]
  if (creator !== undefined && creator.gaps > 0 && scenario.isPty && creator.screens === 0)
    throw new Error('a gap without a screen')
}
