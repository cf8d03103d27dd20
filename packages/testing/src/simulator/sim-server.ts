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
import type { Sabotage } from './sabotage.ts'
import type { LinkEnd, SimLink } from './sim-link.ts'
import { type ProcessPlan, SimProcess } from './sim-process.ts'
import type { World } from './world.ts'

/** A screen whose content proves the offset it was taken at. */
export function screenAt(offset: number): Uint8Array {
  return new TextEncoder().encode(`screen@${offset}`)
}

/** What a connection asks for in its URL. */
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
  readonly #world: World
  #ledger = new CreateLedger()
  readonly #links = new Map<ConnectionId, { hosted: Hosted; link: SimLink }>()
  readonly #options: Omit<SessionOptions, 'id'>
  readonly #plan: ProcessPlan
  readonly #sabotage: Sabotage
  /** Newest connection per create id and principal, for a sabotage that mixes them up. */
  readonly #newestLink = new Map<string, ConnectionId>()
  #minted = 0
  #spawns = 0
  /** Called after every step that changed something. */
  onStep: () => void = () => {}

  constructor(
    world: World,
    setup: { options: Omit<SessionOptions, 'id'>; plan: ProcessPlan; sabotage: Sabotage },
  ) {
    this.#world = world
    this.#options = setup.options
    this.#plan = setup.plan
    this.#sabotage = setup.sabotage
  }

  /** Processes started so far. */
  get spawns(): number {
    return this.#spawns
  }

  /** The session that was created last: earlier ones never started a process. */
  get newest(): Hosted | undefined {
    return [...this.sessions.values()].at(-1)
  }

  /** Accepts a connection: returns the server's end of it, or the reason it is refused. */
  accept(request: SimRequest, linkOf: () => SimLink): LinkEnd | ErrorCode {
    const hosted = this.#find(request)
    if (typeof hosted === 'string') return hosted
    const id = (this.#minted += 1)
    const now = (): number => this.#world.nowMs
    const { session } = hosted
    const run = (effects: readonly ServerEffect[]): void => this.#run(hosted, effects)
    const rights =
      this.#sabotage.trustsEveryone === true ? { ...request.rights, principal: 'p' } : request.rights
    const line = `${request.createId} ${request.rights.principal}`
    this.#world.after(0, () => {
      this.#newestLink.set(line, id)
      this.#links.set(id, { hosted, link: linkOf() })
      run(session.connected(id, rights, { env: {}, cols: 80, rows: 24 }, now()))
    })
    const listener = (): ConnectionId =>
      this.#sabotage.mixesLinks === true ? (this.#newestLink.get(line) ?? id) : id
    return {
      message: (data) => run(session.received(listener(), data, now())),
      closed: () => run(session.disconnected(id, now())),
      blocked: () => session.blocked(id),
      drained: () => run(session.drained(id, now())),
    }
  }

  #find(request: SimRequest): Hosted | ErrorCode {
    if (request.session !== undefined) return this.sessions.get(request.session) ?? 'session_gone'
    if (this.#sabotage.forgetsCreates === true) this.#ledger = new CreateLedger()
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
        const session = new ServerSession({ ...this.#options, id }, this.#world.nowMs)
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

  #run(hosted: Hosted, asked: readonly ServerEffect[]): void {
    const effects = this.#sabotage.effects?.(asked) ?? asked
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
    else if (effect.do === 'write') process?.give({ kind: 'bytes', bytes: effect.bytes })
    else if (effect.do === 'closeInput') process?.give({ kind: 'eof' })
    else if (effect.do === 'resize') process?.give({ kind: 'resize', cols: effect.cols, rows: effect.rows })
    else if (effect.do === 'signal') process?.give({ kind: 'signal', signal: effect.signal })
    else if (effect.do === 'pause') process?.pause()
    else if (effect.do === 'resume') process?.resume()
    // Ends later: the session must not be called while its effects are performed.
    else if (effect.do === 'terminate') this.#world.after(1, () => process?.kill())
    else return false
    return true
  }

  #perform(hosted: Hosted, effect: ServerEffect): void {
    const { session } = hosted
    if (effect.do === 'send') this.#links.get(effect.connectionId)?.link.send('down', effect.data)
    else if (effect.do === 'sendOutput')
      this.#links.get(effect.connectionId)?.link.send('down', packData(effect.stream, effect.bytes))
    else if (effect.do === 'close') this.#links.get(effect.connectionId)?.link.close('server', effect.code)
    else if (effect.do === 'snapshot') this.#render(hosted, effect.attachment)
    else if (effect.do === 'again') {
      this.#world.after(0, () => this.#run(hosted, session.turn(this.#world.nowMs)))
    } else if (effect.do === 'gone') {
      if (effect.wasStarted) this.#ledger.markEnded(session.id)
      else this.#ledger.release(session.id)
    }
  }

  #spawn(hosted: Hosted): SimProcess {
    this.#spawns += 1
    const { session } = hosted
    const run = (effects: readonly ServerEffect[]): void => this.#run(hosted, effects)
    return new SimProcess(this.#world, this.#plan, {
      output: (stream, bytes) => run(session.output(stream, bytes, this.#world.nowMs)),
      inputSettled: (bytes) => run(session.inputSettled(bytes, this.#world.nowMs)),
      inputClosed: () => run(session.inputClosed(this.#world.nowMs)),
      ended: (exit) => run(session.ended(exit, this.#world.nowMs)),
    })
  }

  #render(hosted: Hosted, attachment: string): void {
    this.#world.after(this.#world.random.int(0, 30), () => {
      const at = hosted.session.log.end
      const { cols, rows } = hosted.session.resizes.sizeAt(at)
      const data = screenAt(this.#sabotage.rendersLate === true ? at - 1 : at)
      const snapshot = { at, cols, rows, data, exact: true }
      this.#run(hosted, hosted.session.snapshotReady(attachment, snapshot, this.#world.nowMs))
    })
  }

  #wake(hosted: Hosted): void {
    const { nowMs } = this.#world
    const atMs = hosted.session.nextTickMs(nowMs)
    if (atMs === undefined || (hosted.wakeAtMs !== undefined && hosted.wakeAtMs <= atMs)) return
    hosted.wakeAtMs = atMs
    this.#world.after(atMs - nowMs, () => {
      if (hosted.wakeAtMs !== atMs) return
      hosted.wakeAtMs = undefined
      this.#run(hosted, hosted.session.tick(this.#world.nowMs))
    })
  }
}

/** Close code to error code, as a client that was told nothing else reads it. */
export function codeOfClose(close: number | undefined): ErrorCode | undefined {
  if (close === undefined) return undefined
  for (const [code, row] of Object.entries(ERRORS)) if (row.close === close) return code as ErrorCode
  return undefined
}
