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
import type { ShutdownPlan } from '../shutdown.ts'
import { type HostedCommand, specify } from './hosted-command.ts'
import { OutputBatch } from './output-batch.ts'
import type { ScreenModel } from '../screen/screen-model.ts'
import { type SendOutcome, type SessionConnection, SessionConnections } from './connections.ts'
import { SessionTimer } from './session-timer.ts'

export interface HostDependencies {
  readonly startProcess: StartProcess
  /** Renders screens; undefined in pipe mode. */
  readonly createScreen: (session: ServerSession) => ScreenModel
  readonly log: Log
  readonly now: () => number
  readonly onExit: (id: string, end: ProcessEnd) => void
  readonly onGone: (id: string, wasStarted: boolean) => void
  /** What a request asked for was refused after it was answered. */
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

/** Performs what a server session asks for: process, sockets, timer. */
export class SessionHost {
  readonly session: ServerSession
  readonly command: HostedCommand
  readonly #deps: HostDependencies
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

  constructor(options: SessionOptions, command: HostedCommand, deps: HostDependencies) {
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

  /** How log lines name the session. */
  get #named(): { readonly session: string; readonly request_id: string } {
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
    link: SessionConnection,
    rights: ConnectionRights,
    start: StartParameters,
  ): void {
    this.#connections.add(id, link)
    this.#runFor(id, this.session.connected(id, rights, start, this.#deps.now()))
  }

  received(id: ConnectionId, data: string | Uint8Array): void {
    if (typeof data !== 'string') this.#deps.countInput(data.byteLength)
    this.#runFor(id, this.session.received(id, data, this.#deps.now()))
  }

  /** Input of a connection that the process has not taken. */
  unsettledInput(id: ConnectionId): number {
    const attachment = this.session.attachments.byConnection(id)
    return attachment === undefined ? 0 : attachment.inputAccepted - attachment.inputSettled
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

  /** Ends the session on request, and whatever its process has left behind. */
  end(): void {
    this.#run(this.session.end(this.#deps.now()))
    if (this.#hasEnded) void this.#process?.terminate()
  }

  /**
   * Says that the end is near, ends the process, and gives attachments until the deadline to take its last bytes and its
   * exit; whoever has not is told to come back. Resolves when nothing of it is left.
   */
  async shutDown({ notice, timeouts, totalMs }: ShutdownPlan): Promise<void> {
    this.#run(this.session.warnAll({ code: 'shutting_down', ...notice }, this.#deps.now()))
    // A process that nobody has greeted yet is not started any more.
    if (this.#process === undefined) this.end()
    await Promise.all([this.#process?.terminate(timeouts), this.#connections.whenEmpty(totalMs)])
    this.#run(
      this.session.closeAll(
        { ...notice, code: 'shutting_down', message: 'The sandbox is stopping' },
        this.#deps.now(),
      ),
    )
  }

  /** Cuts off the attachments that match; returns how many had a connection. */
  revoke(which: AttachmentFilter): number {
    const { effects, closed } = this.session.revoke(which, this.#deps.now())
    this.#run(effects)
    return closed
  }

  /** Performs what a connection's own event led to, which may be that it is let in. */
  #runFor(id: ConnectionId, effects: readonly ServerEffect[]): void {
    if (!this.#connections.isAdmitted(id) && this.session.attachments.byConnection(id) !== undefined)
      this.#connections.admit(id)
    this.#run(effects)
  }

  #close(id: ConnectionId, code: number, reason: string): void {
    const link = this.#connections.find(id)
    if (link === undefined) return
    if (reason !== '' && !this.#connections.isAdmitted(id)) this.#deps.onRefused(link.requestId, reason)
    link.close(code, reason)
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
        this.#send(effect.connectionId, (link) => link.send(effect.data))
        return
      case 'sendOutput':
        this.#send(effect.connectionId, (link) => link.sendOutput(effect.stream, effect.bytes))
        return
      case 'close':
        this.#close(effect.connectionId, effect.code, effect.reason)
        return
      case 'write':
        this.#process?.write(effect.bytes)
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
        this.#forget(effect.wasStarted)
        return
    }
  }

  #start(start: StartParameters): void {
    const { mode } = this.session.options
    const { now, log } = this.#deps
    const started = this.#deps.startProcess(
      specify(this.command, start, this.session.options),
      this.#processEvents(),
    )
    if (isFailure(started)) {
      const code = SPAWN_CODES[started.failure]
      log.info('start_failed', { ...this.#named, code })
      this.#deps.onRefused(this.command.requestId, code)
      this.#run(this.session.startFailed({ code, message: started.message }, now()))
      return
    }
    this.#process = started
    log.info('started', { ...this.#named, pid: started.pid, mode })
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
        const message = 'Cannot type this line: it is longer than 4,095 bytes in canonical mode'
        this.#run(this.session.inputRefused({ code, message }))
      },
      inputClosed: () => this.#run(this.session.inputClosed(now())),
      ended: (end) => this.#ended(end),
    }
  }

  #outputArrived(stream: OutputStream, bytes: Uint8Array): void {
    this.#deps.countOutput(bytes.byteLength)
    this.#run(this.session.output(stream, bytes, this.#deps.now()))
    this.#screen?.outputArrived()
  }

  /** Ends a process that runs. One that has ended by itself may have left others behind on purpose, as with ssh. */
  #terminate(): void {
    if (!this.#hasEnded) void this.#process?.terminate()
  }

  #ended(end: ProcessEnd): void {
    this.#output.flush()
    this.#hasEnded = true
    this.#deps.log.info('ended', { ...this.#named, exit: end.code, signal: end.signal })
    this.#deps.onExit(this.session.id, end)
    this.#run(this.session.ended(end, this.#deps.now()))
  }

  #send(id: ConnectionId, send: (link: SessionConnection) => SendOutcome): void {
    const link = this.#connections.find(id)
    if (link === undefined) return
    switch (send(link)) {
      case 'sent':
        return
      case 'full':
        this.session.blocked(id)
        return
      case 'lost':
        // The frame is not on its way, so nothing after it may be either: the client resumes where it was.
        link.terminate()
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

  /** Programs draw anew when their window changes, so it changes for a moment. */
  #repaint(): void {
    const { cols, rows } = this.session.resizes.current
    this.#process?.resize(cols, rows > 1 ? rows - 1 : rows + 1)
    this.#process?.resize(cols, rows)
  }

  #forget(wasStarted: boolean): void {
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
