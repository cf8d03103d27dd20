import {
  CreateLedger,
  ERRORS,
  type ErrorCode,
  type ConnectionId,
  type ConnectionRights,
  packData,
  ServerSession,
  type ServerEffect,
  type SessionOptions,
} from '@sandwire/protocol'
import type { InjectedBug } from './injected-bugs.ts'
import type { ConnectionEnd, SimConnection } from './sim-connection.ts'
import { type ProcessPlan, SimProcess } from './sim-process.ts'
import type { Scheduler } from './scheduler.ts'

/** Snapshot content that encodes its offset. */
export function screenAt(offset: number): Uint8Array {
  return new TextEncoder().encode(`screen@${offset}`)
}

/** The parameters of an upgrade request. */
export interface SimRequest {
  readonly session: string | undefined
  readonly createId: string
  readonly rights: ConnectionRights
}

export interface Hosted {
  readonly session: ServerSession
  process: SimProcess | undefined
  wakeAtMs: number | undefined
}

/** sandboxd in virtual time: real sessions and a real create ledger over simulated processes. */
export class SimServer {
  readonly sessions = new Map<string, Hosted>()
  readonly #scheduler: Scheduler
  #ledger = new CreateLedger()
  readonly #connections = new Map<ConnectionId, { hosted: Hosted; connection: SimConnection }>()
  readonly #options: Omit<SessionOptions, 'id'>
  readonly #plan: ProcessPlan
  readonly #bug: InjectedBug
  /** Newest connection per create id and principal, for `mixesConnections`. */
  readonly #newestConnection = new Map<string, ConnectionId>()
  #minted = 0
  #spawns = 0
  /** Called after every state change. */
  onStep: () => void = () => {}

  constructor(
    scheduler: Scheduler,
    setup: { options: Omit<SessionOptions, 'id'>; plan: ProcessPlan; bug: InjectedBug },
  ) {
    this.#scheduler = scheduler
    this.#options = setup.options
    this.#plan = setup.plan
    this.#bug = setup.bug
  }

  /** Processes started so far. */
  get spawns(): number {
    return this.#spawns
  }

  /** The session created last; earlier ones never started a process. */
  get newest(): Hosted | undefined {
    return [...this.sessions.values()].at(-1)
  }

  /** Accepts a connection and returns the server's end of it, or the error code of the refusal. */
  accept(request: SimRequest, connectionOf: () => SimConnection): ConnectionEnd | ErrorCode {
    const hosted = this.#find(request)
    if (typeof hosted === 'string') return hosted
    const id = (this.#minted += 1)
    const now = (): number => this.#scheduler.nowMs
    const { session } = hosted
    const run = (effects: readonly ServerEffect[]): void => this.#run(hosted, effects)
    const rights = this.#bug.skipsOwnerCheck === true ? { ...request.rights, principal: 'p' } : request.rights
    const key = `${request.createId} ${request.rights.principal}`
    this.#scheduler.after(0, () => {
      this.#newestConnection.set(key, id)
      this.#connections.set(id, { hosted, connection: connectionOf() })
      run(session.connected(id, rights, { env: {}, cols: 80, rows: 24 }, now()))
    })
    const senderId = (): ConnectionId =>
      this.#bug.mixesConnections === true ? (this.#newestConnection.get(key) ?? id) : id
    return {
      message: (data) => run(session.received(senderId(), data, now())),
      closed: () => run(session.disconnected(id, now())),
      blocked: () => session.blocked(id),
      drained: () => run(session.drained(id, now())),
    }
  }

  #find(request: SimRequest): Hosted | ErrorCode {
    if (request.session !== undefined) return this.sessions.get(request.session) ?? 'session_gone'
    if (this.#bug.forgetsCreates === true) this.#ledger = new CreateLedger()
    const id = `s${this.sessions.size + 1}`
    const { principal } = request.rights
    const answer = this.#ledger.claim({
      principal,
      createId: request.createId,
      fingerprint: 'same',
      session: id,
    })
    switch (answer.kind) {
      case 'new': {
        const session = new ServerSession({ ...this.#options, id }, this.#scheduler.nowMs)
        const hosted: Hosted = { session, process: undefined, wakeAtMs: undefined }
        this.sessions.set(id, hosted)
        this.#wake(hosted)
        return hosted
      }
      case 'existing':
        return this.sessions.get(answer.session) ?? 'session_gone'
      case 'conflict':
        return 'conflict'
      case 'gone':
        return 'session_gone'
    }
  }

  #run(hosted: Hosted, requested: readonly ServerEffect[]): void {
    const effects = this.#bug.effects?.(requested) ?? requested
    for (const effect of effects) {
      if (!this.#performOnProcess(hosted, effect)) this.#perform(hosted, effect)
    }
    this.#wake(hosted)
    this.onStep()
  }

  /** Effects on the process; false for all others. */
  #performOnProcess(hosted: Hosted, effect: ServerEffect): boolean {
    const { process } = hosted
    if (effect.do === 'start') hosted.process = this.#spawn(hosted)
    else if (effect.do === 'write') process?.receive({ kind: 'bytes', bytes: effect.bytes })
    else if (effect.do === 'closeInput') process?.receive({ kind: 'eof' })
    else if (effect.do === 'resize')
      process?.receive({ kind: 'resize', cols: effect.cols, rows: effect.rows })
    else if (effect.do === 'signal') process?.receive({ kind: 'signal', signal: effect.signal })
    else if (effect.do === 'pause') process?.pause()
    else if (effect.do === 'resume') process?.resume()
    // Deferred: the session must not be called while its effects are performed.
    else if (effect.do === 'terminate') this.#scheduler.after(1, () => process?.kill())
    else return false
    return true
  }

  #perform(hosted: Hosted, effect: ServerEffect): void {
    const { session } = hosted
    if (effect.do === 'send') this.#connections.get(effect.connectionId)?.connection.send('down', effect.data)
    else if (effect.do === 'sendOutput')
      this.#connections
        .get(effect.connectionId)
        ?.connection.send('down', packData(effect.stream, effect.bytes))
    else if (effect.do === 'close')
      this.#connections.get(effect.connectionId)?.connection.close('server', effect.code)
    else if (effect.do === 'snapshot') this.#render(hosted, effect.attachment)
    else if (effect.do === 'again') {
      this.#scheduler.after(0, () => this.#run(hosted, session.turn(this.#scheduler.nowMs)))
    } else if (effect.do === 'gone') {
      if (effect.wasStarted) this.#ledger.markEnded(session.id)
      else this.#ledger.release(session.id)
    }
  }

  #spawn(hosted: Hosted): SimProcess {
    this.#spawns += 1
    const { session } = hosted
    const run = (effects: readonly ServerEffect[]): void => this.#run(hosted, effects)
    return new SimProcess(this.#scheduler, this.#plan, {
      output: (stream, bytes) => run(session.output(stream, bytes, this.#scheduler.nowMs)),
      inputSettled: (bytes) => run(session.inputSettled(bytes, this.#scheduler.nowMs)),
      inputClosed: () => run(session.inputClosed(this.#scheduler.nowMs)),
      ended: (exit) => run(session.ended(exit, this.#scheduler.nowMs)),
    })
  }

  #render(hosted: Hosted, attachment: string): void {
    this.#scheduler.after(this.#scheduler.random.int(0, 30), () => {
      const at = hosted.session.log.end
      const { cols, rows } = hosted.session.resizes.sizeAt(at)
      const data = screenAt(this.#bug.rendersStale === true ? at - 1 : at)
      const snapshot = { at, cols, rows, data, exact: true }
      this.#run(hosted, hosted.session.snapshotReady(attachment, snapshot, this.#scheduler.nowMs))
    })
  }

  #wake(hosted: Hosted): void {
    const { nowMs } = this.#scheduler
    const atMs = hosted.session.nextTickMs(nowMs)
    if (atMs === undefined || (hosted.wakeAtMs !== undefined && hosted.wakeAtMs <= atMs)) return
    hosted.wakeAtMs = atMs
    this.#scheduler.after(atMs - nowMs, () => {
      if (hosted.wakeAtMs !== atMs) return
      hosted.wakeAtMs = undefined
      this.#run(hosted, hosted.session.tick(this.#scheduler.nowMs))
    })
  }
}

/** The error code that a client derives from a close code alone. */
export function codeOfClose(close: number | undefined): ErrorCode | undefined {
  if (close === undefined) return undefined
  for (const [code, row] of Object.entries(ERRORS)) if (row.close === close) return code as ErrorCode
  return undefined
}
