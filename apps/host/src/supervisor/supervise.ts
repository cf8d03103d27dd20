import { closeSync, openSync, writeSync } from 'node:fs'
import path from 'node:path'
import { type StopReason, TokenBucket } from '@sandwire/protocol'
import { MissingFile } from '../data/folder-problem.ts'
import type { ProcessIdentity } from '../data/process-identity.ts'
import { openEgressProcess } from '../egress/egress-process.ts'
import type { Isolation, LaunchedSandbox, OutsidePaths } from '../isolation/isolation.ts'
import { IdsInUse } from '../isolation/uid-claims.ts'
import { describeCause } from '../log.ts'
import { openForward } from '@sandwire/socket-forward'
import { giveSocket } from '../data/private-file.ts'
import { gateSocket } from '../slots/gates.ts'
import { Slots } from '../slots/slots.ts'
import { serveControl } from './control-server.ts'
import { createDaemonArguments, ENV_FILE, hasEgress, writeStopReason, watchForReady } from './daemon.ts'
import { reasonInState, type RunningState, type SandboxFiles, writeState } from './sandbox-files.ts'
import { FILES_MISSING, LAST_SAVE_MS, STOP_GRACE_MS, type SupervisorSpec } from './spec.ts'
import type { SupervisorLog } from './supervisor-log.ts'

/** Connections of one sandbox to the credential gateway; each costs the supervisor two descriptors, and workerd one of those that all users share. */
const MAX_GATEWAY_CONNECTIONS = 32
/** New ones are requests that workerd must examine, whatever limits it has. */
const GATEWAY_PACE = { perSecond: 10, burst: 100 }
/** How long a request to the gateway waits while control is being started. */
const GATEWAY_WAIT_MS = 2 * 60_000

/** Dependencies of a supervisor. */
export interface SuperviseDependencies {
  readonly isolation: Isolation
  readonly files: SandboxFiles
  readonly log: SupervisorLog
  readonly self: ProcessIdentity
  readonly epoch: string
  readonly nowMs: () => number
  /** Resolves with the reason when this process receives a stop request. */
  readonly stopRequested: Promise<StopReason>
  /** Called once, when the sandbox is running. */
  readonly onRunning: () => void
}

/** A failed step of the start. */
class StartFailure extends Error {
  readonly reason: string

  constructor(reason: string, cause?: unknown) {
    super(`Cannot start the sandbox: ${reason}`, { cause })
    this.reason = reason
  }
}

function knownReason(cause: unknown): string | undefined {
  if (cause instanceof MissingFile) return FILES_MISSING
  return cause instanceof IdsInUse ? 'ids_in_use' : undefined
}

async function step<T>(reason: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new StartFailure(knownReason(cause) ?? reason, cause)
  }
}

/** Expires after a time without a claim. */
class ClaimClock {
  readonly expired: Promise<void>
  readonly #timer: Timer

  constructor(unclaimedMs: number) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.expired = promise
    this.#timer = setTimeout(resolve, unclaimedMs)
  }

  claim(): void {
    this.#timer.refresh()
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }
}

/** Writes the environment of processes for sandboxd, into the newly created run folder. */
function writeEnvFile(paths: OutsidePaths, env: Readonly<Record<string, string>>): void {
  const file = path.join(path.dirname(paths.daemonSocket), ENV_FILE)
  const fd = openSync(file, 'wx', 0o600)
  try {
    writeSync(fd, JSON.stringify(env))
  } finally {
    closeSync(fd)
  }
}

async function awaitReady(
  launched: LaunchedSandbox,
  readyMs: number,
  stopRequested: Promise<StopReason>,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const fail = (reason: string, cause?: unknown): void => reject(new StartFailure(reason, cause))
  const timer = setTimeout(() => fail('not_ready'), readyMs)
  watchForReady(launched.stdout, resolve).catch((error: unknown) => fail('not_ready', error))
  void launched.ended.then((reason) => fail(reason))
  void stopRequested.then(() => fail('stopped'))
  try {
    await promise
  } finally {
    clearTimeout(timer)
  }
}

/** Called before a process of a user can run. Where the kernel does not permit it, the host counts the whole image as used. */
function limitGrowth(launched: LaunchedSandbox, bytes: number, log: SupervisorLog): void {
  try {
    launched.limitGrowth?.(bytes)
  } catch (error) {
    log.warn('disk_growth_unlimited', { cause: describeCause(error) })
  }
}

/** Opens the egress proxy while the sandbox starts. */
function openEgress(
  { start: { id, network } }: SupervisorSpec,
  { isolation, log }: SuperviseDependencies,
  undo: AsyncDisposableStack,
): Promise<unknown> {
  const opening = openEgressProcess({ launch: () => isolation.launchEgress(id), network, log })
  undo.defer(async () => {
    const opened = await opening.catch(() => undefined)
    await opened?.[Symbol.asyncDispose]()
  })
  return opening
}

interface StartedSandbox {
  readonly launched: LaunchedSandbox
  readonly paths: OutsidePaths
}

/** Starts the sandbox up to its ready line; `undo` reverts the steps. */
async function startSandbox(
  spec: SupervisorSpec,
  deps: SuperviseDependencies,
  undo: AsyncDisposableStack,
): Promise<StartedSandbox> {
  const { isolation, log } = deps
  const { start } = spec
  const paths = await step('prepare_failed', isolation.prepare(start))
  if (Object.keys(start.env).length > 0) writeEnvFile(paths, start.env)
  const egress = hasEgress(start) ? openEgress(spec, deps, undo) : undefined
  const plan = {
    id: start.id,
    name: start.name,
    limits: start.limits,
    daemonArgs: createDaemonArguments(start, {
      isServed: spec.isolation.workspace !== undefined,
      hasGateway: spec.gates !== undefined && spec.isolation.kind === 'bubblewrap',
      ...(spec.savesFiles === true && { lastSaveMs: LAST_SAVE_MS }),
    }),
    publicKey: start.publicKey,
    hasEgress: hasEgress(start),
  }
  const launched = await step('launch_failed', isolation.launch(plan))
  undo.defer(() => launched.stop(STOP_GRACE_MS))
  log.follow(launched.stderr).catch((error: unknown) => log.warn('log_lost', { cause: describeCause(error) }))
  await awaitReady(launched, spec.readyMs, deps.stopRequested)
  if (spec.growthBytes !== undefined) limitGrowth(launched, spec.growthBytes, log)
  if (egress !== undefined) await step('egress_failed', egress)
  return { launched, paths }
}

/** Publishes the socket of a sandbox in a slot. */
function publishSlot(
  slots: Slots,
  id: string,
  launched: LaunchedSandbox,
  { daemonSocket }: OutsidePaths,
): Pick<RunningState, 'slot' | 'daemonPid'> {
  const daemonPid = launched.findDaemon()
  if (daemonPid === undefined) throw new StartFailure('not_ready')
  try {
    return { slot: slots.publish(id, daemonSocket, launched.daemonUid), daemonPid }
  } catch (cause) {
    throw new StartFailure('slot_failed', cause)
  }
}

/** Lets sandboxd connect to control's gate of this slot, which tells control the slot of each request. */
async function openGate(
  gates: string,
  slot: number,
  { daemonUid }: LaunchedSandbox,
  { gatewaySocket }: OutsidePaths,
  undo: AsyncDisposableStack,
): Promise<void> {
  const turns = new TokenBucket(GATEWAY_PACE.perSecond, GATEWAY_PACE.burst, performance.now())
  const server = await step(
    'gateway_failed',
    openForward({
      listen: { path: gatewaySocket },
      // Connects anew each time, so that a restart of control needs no notice.
      target: () => gateSocket(gates, slot),
      maxConnections: MAX_GATEWAY_CONNECTIONS,
      mayForward: () => turns.take(1, performance.now()),
      // An agent gives up after a few refused connections, sooner than a host is started again.
      waitMs: GATEWAY_WAIT_MS,
    }),
  )
  undo.defer(() => void server.close())
  if (process.getuid?.() === 0) giveSocket(gatewaySocket, 0, daemonUid)
}

/** Runs the sandbox until it ends or is stopped; resolves with the reason. */
async function runSandbox(spec: SupervisorSpec, deps: SuperviseDependencies): Promise<string> {
  const { files, log, nowMs } = deps
  const beganMs = nowMs()
  const alive = { id: spec.start.id, epoch: deps.epoch, ...deps.self, controlSocket: spec.controlSocket }
  await using undo = new AsyncDisposableStack()
  const { promise: stopped, resolve: stop } = Promise.withResolvers<StopReason>()
  const slots = new Slots(spec.slots)
  using clock = new ClaimClock(spec.unclaimedMs)
  const target = {
    status: () => ({ id: alive.id, epoch: alive.epoch }),
    claim: () => clock.claim(),
    stop,
  }
  undo.use(serveControl(spec.controlSocket, target, log))
  // The slot is released last, when no process of this sandbox can read from it.
  undo.defer(() => slots.release(alive.id))
  writeState(files.state, { state: 'starting', ...alive })
  const stopRequested = Promise.race([deps.stopRequested, stopped])
  const { launched, paths } = await startSandbox(spec, { ...deps, stopRequested }, undo)
  const published = publishSlot(slots, alive.id, launched, paths)
  if (spec.gates !== undefined) await openGate(spec.gates, published.slot, launched, paths, undo)
  const running: RunningState = { state: 'running', ...alive, ...published, startedMs: nowMs() }
  writeState(files.state, running)
  log.info('running', {
    slot: published.slot,
    pid: launched.pid,
    isolation: deps.isolation.kind,
    duration_ms: running.startedMs - beganMs,
  })
  deps.onRunning()
  const reason = await Promise.race([launched.ended, stopRequested, clock.expired.then(() => 'unclaimed')])
  // Logged before the state is written, which may fail on a full disk.
  log.info('stopping', { reason })
  writeStopReason(paths, reason)
  // The state remains `running` meanwhile: control saves the files of running sandboxes only.
  if (reason === 'shutting_down' && spec.savesFiles === true)
    await launched.stop(STOP_GRACE_MS + LAST_SAVE_MS)
  writeState(files.state, { state: 'stopping', ...alive, ...reasonInState(reason) })
  return reason
}

/** Removes everything but the files. Leftovers are removed when the sandbox is destroyed. */
async function cleanUp(id: string, { isolation, log }: SuperviseDependencies): Promise<void> {
  try {
    await isolation.sweep(id)
  } catch (error) {
    log.warn('cleanup_failed', { cause: describeCause(error) })
  }
}

/** Runs one sandbox from start to end, and records why it ended. Never throws; returns the reason. */
export async function supervise(spec: SupervisorSpec, deps: SuperviseDependencies): Promise<string> {
  let reason: string
  try {
    reason = await runSandbox(spec, deps)
  } catch (error) {
    reason = error instanceof StartFailure ? error.reason : 'supervisor_failed'
    const cause = error instanceof StartFailure ? error.cause : error
    deps.log.warn('failed', { reason, ...(cause !== undefined && { cause: describeCause(cause) }) })
  }
  await cleanUp(spec.start.id, deps)
  const stopReason = reason === 'stopped' ? {} : reasonInState(reason)
  try {
    writeState(deps.files.state, { state: 'stopped', id: spec.start.id, ...stopReason })
  } catch (error) {
    // For example on a full disk. The dead supervisor then means the same.
    deps.log.warn('state_not_written', { cause: describeCause(error) })
  }
  deps.log.info('stopped', stopReason)
  return reason
}
