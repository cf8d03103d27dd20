import { raceTimeout } from '@sandwire/async'
import {
  EffectQueue,
  type ConnectionId,
  type ConnectionRights,
  type OutputStream,
  type ServerEffect,
  ServerSession,
  type SessionOptions,
  type StartParameters,
  type AttachmentFilter,
} from '@sandwire/protocol'
import type { Log } from '../log.ts'
import type {
  ProcessEnd,
  ProcessEvents,
  RunningProcess,
  SpawnFailure,
  StartProcess,
} from '../processes/process.ts'
import type { ShutdownPlan } from '../shutdown-plan.ts'
import { createProcessSpec, type SessionCommand } from './session-command.ts'
import { OutputBatch } from './output-batch.ts'
import type { ScreenModel } from '../screen/screen-model.ts'
import { type SendOutcome, type SessionConnection, SessionConnections } from './connections.ts'

export interface RunnerDependencies {
  readonly startProcess: StartProcess
  /** Types into the pane that `target` names, as seen from `pane`. */
  readonly writePane: (pane: string, target: string, bytes: Uint8Array) => Promise<unknown>
  /** Renders screens; undefined in pipe mode. */
  readonly createScreen: (session: ServerSession) => ScreenModel
  readonly log: Log
  readonly now: () => number
  readonly onExit: (id: string, end: ProcessEnd) => void
  /** The process has exited or could not be started; the session stays for its clients. */
  readonly onFinished: (runner: SessionRunner) => void
  readonly onGone: (id: string, wasStarted: boolean) => void
  /** A request was refused after its upgrade. */
  readonly onRefused: (requestId: string, code: string) => void
  readonly countOutput: (bytes: number) => void
  readonly countInput: (bytes: number) => void
}

const SPAWN_CODES = {
  not_found: 'command_not_found',
  not_executable: 'command_not_executable',
  spawn_failed: 'spawn_failed',
} as const

function isFailure(started: RunningProcess | SpawnFailure): started is SpawnFailure {
  return 'failure' in started
}

/** Performs the effects of a server session: process, sockets, timer. */
export class SessionRunner {
  readonly session: ServerSession
  readonly command: SessionCommand
  readonly #deps: RunnerDependencies
  readonly #connections = new SessionConnections()
  readonly #screen: ScreenModel | undefined
  #process: RunningProcess | undefined
  #hasEnded = false
  readonly #output = new OutputBatch((stream, bytes) => this.#outputArrived(stream, bytes))
  readonly #effects = new EffectQueue<ServerEffect>(
    (effect) => this.#perform(effect),
    () => this.#arm(),
  )
  readonly #timer: SessionTimer
  #isGone = false

  constructor(options: SessionOptions, command: SessionCommand, deps: RunnerDependencies) {
    this.session = new ServerSession(options, deps.now())
    this.command = command
    this.#deps = deps
    this.#screen = options.mode === 'pty' ? deps.createScreen(this.session) : undefined
    this.#timer = new SessionTimer(deps.now, () => this.#run(this.session.tick(deps.now())))
    this.#arm()
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  get #logFields(): { readonly session: string; readonly request_id: string } {
    return { session: this.session.id, request_id: this.command.requestId }
  }

  get isGone(): boolean {
    return this.#isGone
  }

  start(start: StartParameters): void {
    this.#run(this.session.start(start, this.#deps.now()))
  }

  connected(
    id: ConnectionId,
    connection: SessionConnection,
    rights: ConnectionRights,
    start: StartParameters,
  ): void {
    this.#connections.add(id, connection)
    this.#runFor(id, this.session.connected(id, rights, start, this.#deps.now()))
  }

  received(id: ConnectionId, data: string | Uint8Array): void {
    if (typeof data !== 'string') this.#deps.countInput(data.byteLength)
    this.#runFor(id, this.session.received(id, data, this.#deps.now()))
  }

  /** Bytes of input from a connection that the process has not taken. */
  unsettledInput(id: ConnectionId): number {
    const attachment = this.session.attachments.byConnection(id)
    return attachment === undefined ? 0 : attachment.inputAccepted - attachment.inputSettled
  }

  /** True while the program reads a line that the terminal does not show, such as a password. */
  get isReadingSecret(): boolean {
    return this.#process?.isReadingSecret?.() ?? false
  }

  drained(id: ConnectionId): void {
    this.#run(this.session.drained(id, this.#deps.now()))
  }

  disconnected(id: ConnectionId): void {
    this.#connections.remove(id)
    this.#run(this.session.disconnected(id, this.#deps.now()))
  }

  signal(name: string): void {
    this.#process?.signal(name)
  }

  /** Ends the session on request, with all processes that it left running. */
  end(): void {
    this.#run(this.session.end(this.#deps.now()))
    if (this.#hasEnded) void this.#process?.terminate()
  }

  /** Ends the session; resolves when no process of it is left. */
  async endAndWait(): Promise<void> {
    this.end()
    await this.#process?.terminate()
  }

  /** Removes a session that has finished before its keep time is over; processes that it left running stay. */
  forget(): void {
    this.#run(this.session.end(this.#deps.now()))
  }

  /**
   * Announces the stop, ends the process, and gives attachments until the deadline to receive its last bytes and its exit.
   * Those that have not are closed with `shutting_down`. Resolves when no process is left, at the deadline at the latest.
   */
  async shutDown({ notice, timeouts, totalMs }: ShutdownPlan): Promise<void> {
    this.#run(this.session.warnAll({ code: 'shutting_down', ...notice }, this.#deps.now()))
    // A session still waiting for its first hello does not start its process any more.
    if (this.#process === undefined) this.end()
    const terminated = this.#process?.terminate(timeouts)
    await Promise.all([
      // A process that survives SIGKILL, or was being terminated with longer timeouts, does not delay the stop.
      terminated === undefined ? undefined : raceTimeout(terminated, totalMs, undefined),
      this.#connections.whenEmpty(totalMs),
    ])
    this.#run(
      this.session.closeAll(
        { ...notice, code: 'shutting_down', message: 'The sandbox is stopping' },
        this.#deps.now(),
      ),
    )
  }

  /** Closes the attachments that match; returns how many had a connection. */
  revoke(which: AttachmentFilter): number {
    const { effects, closed } = this.session.revoke(which, this.#deps.now())
    this.#run(effects)
    return closed
  }

  /** Performs the effects of a connection's own event, which may have made it an attachment. */
  #runFor(id: ConnectionId, effects: readonly ServerEffect[]): void {
    if (!this.#connections.isAdmitted(id) && this.session.attachments.byConnection(id) !== undefined)
      this.#connections.admit(id)
    this.#run(effects)
  }

  #close(id: ConnectionId, code: number, reason: string): void {
    const connection = this.#connections.find(id)
    if (connection === undefined) return
    if (reason !== '' && !this.#connections.isAdmitted(id)) this.#deps.onRefused(connection.requestId, reason)
    connection.close(code, reason)
  }

  #run(effects: readonly ServerEffect[]): void {
    this.#effects.run(effects)
  }

  #perform(effect: ServerEffect): void {
    switch (effect.do) {
      case 'start':
        this.#start(effect)
        return
      case 'send':
        this.#send(effect.connectionId, (connection) => connection.send(effect.data))
        return
      case 'sendOutput':
        this.#send(effect.connectionId, (connection) => connection.sendOutput(effect.stream, effect.bytes))
        return
      case 'close':
        this.#close(effect.connectionId, effect.code, effect.reason)
        return
      case 'write':
        this.#process?.write(effect.bytes)
        return
      case 'writePane':
        void this.#writePane(effect.pane, effect.bytes)
        return
      case 'closeInput':
        this.#process?.closeInput()
        return
      case 'resize':
        this.#process?.resize(effect.cols, effect.rows)
        return
      case 'signal':
        this.#process?.signal(effect.signal)
        return
      case 'pause':
        this.#process?.pause()
        return
      case 'resume':
        this.#process?.resume()
        return
      case 'snapshot':
        void this.#render(effect.attachment)
        return
      case 'repaint':
        this.#repaint()
        return
      case 'again':
        setImmediate(() => this.#run(this.session.turn(this.#deps.now())))
        return
      case 'terminate':
        this.#terminate()
        return
      case 'gone':
        this.#remove(effect.wasStarted)
        return
    }
  }

  async #writePane(target: string, bytes: Uint8Array): Promise<void> {
    const { writePane, now } = this.#deps
    const hasPane = this.command.pane !== undefined && (await writePane(this.command.pane, target, bytes))
    if (hasPane) return
    const message = `Cannot write to the pane: tmux has no pane "${target}", or it takes no more input`
    this.#run(this.session.warnAll({ code: 'session_not_found', message }, now()))
  }

  #start(start: StartParameters): void {
    const { mode } = this.session.options
    const { now, log } = this.#deps
    const started = this.#deps.startProcess(
      createProcessSpec(this.command, start, this.session.options),
      this.#processEvents(),
    )
    if (isFailure(started)) {
      const code = SPAWN_CODES[started.failure]
      log.info('start_failed', { ...this.#logFields, code })
      this.#deps.onRefused(this.command.requestId, code)
      this.#deps.onFinished(this)
      this.#run(this.session.startFailed({ code, message: started.message }, now()))
      return
    }
    this.#process = started
    log.info('started', { ...this.#logFields, pid: started.pid, mode })
  }

  #processEvents(): ProcessEvents {
    const { now } = this.#deps
    return {
      output: (stream, chunk) => this.#output.add(stream, chunk),
      inputSettled: (bytes) => {
        this.#run(this.session.inputSettled(bytes, now()))
        this.#connections.inputSettled()
      },
      inputRefused: (code) => {
        const message = 'Cannot send this line: longer than 4,095 bytes in canonical mode'
        this.#run(this.session.inputRefused({ code, message }))
      },
      inputClosed: () => this.#run(this.session.inputClosed(now())),
      resized: (cols, rows) => {
        this.#output.flush()
        this.#run(this.session.resizedByProcess(cols, rows, now()))
      },
      ended: (end) => this.#ended(end),
    }
  }

  #outputArrived(stream: OutputStream, bytes: Uint8Array): void {
    this.#deps.countOutput(bytes.byteLength)
    this.#run(this.session.output(stream, bytes, this.#deps.now()))
    this.#screen?.outputArrived()
  }

  /** Ends a running process. One that has exited may have left others running on purpose, as with ssh. */
  #terminate(): void {
    if (!this.#hasEnded) void this.#process?.terminate()
  }

  #ended(end: ProcessEnd): void {
    this.#output.flush()
    this.#hasEnded = true
    this.#deps.log.info('ended', { ...this.#logFields, exit: end.code, signal: end.signal })
    this.#deps.onExit(this.session.id, end)
    this.#deps.onFinished(this)
    this.#run(this.session.ended(end, this.#deps.now()))
  }

  #send(id: ConnectionId, send: (connection: SessionConnection) => SendOutcome): void {
    const connection = this.#connections.find(id)
    if (connection === undefined) return
    switch (send(connection)) {
      case 'sent':
        return
      case 'full':
        this.session.blocked(id)
        return
      case 'lost':
        // The frame was not sent, so none after it may be: the client reconnects and resumes at its offset.
        connection.terminate()
        this.#connections.remove(id)
        this.#run(this.session.disconnected(id, this.#deps.now()))
        return
    }
  }

  async #render(attachment: string): Promise<void> {
    const screen = this.#screen
    if (screen === undefined) return
    const snapshot = await screen.render()
    this.#run(this.session.snapshotReady(attachment, snapshot, this.#deps.now()))
  }

  /** Resizes the terminal back and forth, because programs redraw on SIGWINCH. */
  #repaint(): void {
    const { cols, rows } = this.session.resizes.current
    this.#process?.resize(cols, rows > 1 ? rows - 1 : rows + 1)
    this.#process?.resize(cols, rows)
  }

  #remove(wasStarted: boolean): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#screen?.dispose()
    this.#terminate()
    this.#deps.onGone(this.session.id, wasStarted)
  }

  #arm(): void {
    this.#timer.arm(this.#isGone ? undefined : this.session.nextTickMs(this.#deps.now()))
  }
}

/** Longest delay of a timer; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Calls back at the requested time or earlier, because setting the timer anew for every frame would cost more. */
class SessionTimer {
  readonly #now: () => number
  readonly #fire: () => void
  #timer: { readonly id: ReturnType<typeof setTimeout>; readonly atMs: number } | undefined

  constructor(now: () => number, fire: () => void) {
    this.#now = now
    this.#fire = fire
  }

  /** Undefined: never. */
  arm(atMs: number | undefined): void {
    if (this.#timer !== undefined && atMs !== undefined && this.#timer.atMs <= atMs) return
    if (this.#timer !== undefined) clearTimeout(this.#timer.id)
    this.#timer = undefined
    if (atMs === undefined) return
    const id = setTimeout(
      () => {
        this.#timer = undefined
        this.#fire()
      },
      Math.min(MAX_TIMER_MS, Math.max(0, Math.ceil(atMs - this.#now()))),
    )
    this.#timer = { id, atMs }
  }
}
