import {
  CreateLedger,
  ERRORS,
  type ErrorCode,
  type LinkId,
  type LinkRights,
  ServerSession,
  type ServerEffect,
  type SessionOptions,
} from '@sandwire/protocol'
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
  readonly rights: LinkRights
}

interface Hosted {
  readonly session: ServerSession
  process: SimProcess | undefined
  wakeAtMs: number | undefined
}

/** sandboxd in virtual time: real sessions and a real create ledger over simulated processes. */
export class SimServer {
  readonly sessions = new Map<string, Hosted>()
  readonly #world: World
  readonly #ledger = new CreateLedger()
  readonly #links = new Map<LinkId, { hosted: Hosted; link: SimLink }>()
  readonly #options: Omit<SessionOptions, 'id'>
  readonly #plan: ProcessPlan
  #minted = 0
  #spawns = 0
  /** Called after every step that changed something. */
  onStep: () => void = () => {}

  constructor(world: World, options: Omit<SessionOptions, 'id'>, plan: ProcessPlan) {
    this.#world = world
    this.#options = options
    this.#plan = plan
  }

  /** Processes started so far. */
  get spawns(): number {
    return this.#spawns
  }

  /** Accepts a connection: returns the server's end of it, or the reason it is refused. */
  accept(request: SimRequest, linkOf: () => SimLink): LinkEnd | ErrorCode {
    const hosted = this.#find(request)
    if (typeof hosted === 'string') return hosted
    const id = (this.#minted += 1)
    const now = (): number => this.#world.nowMs
    const { session } = hosted
    const run = (effects: readonly ServerEffect[]): void => this.#run(hosted, effects)
    this.#world.after(0, () => {
      this.#links.set(id, { hosted, link: linkOf() })
      run(session.connected(id, request.rights, { env: {}, cols: 80, rows: 24 }, now()))
    })
    return {
      message: (data) => run(session.received(id, data, now())),
      closed: () => run(session.disconnected(id, now())),
      blocked: () => session.blocked(id),
      drained: () => run(session.drained(id, now())),
    }
  }

  #find(request: SimRequest): Hosted | ErrorCode {
    if (request.session !== undefined) return this.sessions.get(request.session) ?? 'session_gone'
    const id = `s${this.sessions.size + 1}`
    const claim = {
      principal: request.rights.principal,
      createId: request.createId,
      fingerprint: 'same',
      session: id,
    }
    const answer = this.#ledger.claim(claim)
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

  #run(hosted: Hosted, effects: readonly ServerEffect[]): void {
    for (const effect of effects) this.#perform(hosted, effect)
    this.#wake(hosted)
    this.onStep()
  }

  #perform(hosted: Hosted, effect: ServerEffect): void {
    const { session } = hosted
    const run = (effects: readonly ServerEffect[]): void => this.#run(hosted, effects)
    switch (effect.do) {
      case 'start':
        this.#spawns += 1
        hosted.process = new SimProcess(this.#world, this.#plan, {
          output: (stream, bytes) => run(session.output(stream, bytes, this.#world.nowMs)),
          inputSettled: (bytes) => run(session.inputSettled(bytes, this.#world.nowMs)),
          ended: (exit) => run(session.ended(exit, this.#world.nowMs)),
        })
        return
      case 'send':
        this.#links.get(effect.link)?.link.send('down', effect.data)
        return
      case 'close':
        this.#links.get(effect.link)?.link.close('server', effect.code)
        return
      case 'write':
        hosted.process?.give({ kind: 'bytes', bytes: effect.bytes })
        return
      case 'closeInput':
        hosted.process?.give({ kind: 'eof' })
        return
      case 'resize':
        hosted.process?.give({ kind: 'resize', cols: effect.cols, rows: effect.rows })
        return
      case 'signal':
        hosted.process?.give({ kind: 'signal', signal: effect.signal })
        return
      case 'pause':
        hosted.process?.pause()
        return
      case 'resume':
        hosted.process?.resume()
        return
      case 'snapshot':
        this.#render(hosted, effect.attachment)
        return
      case 'again':
        this.#world.after(0, () => run(session.turn(this.#world.nowMs)))
        return
      case 'terminate':
        hosted.process?.kill()
        return
      case 'gone':
        if (effect.wasStarted) this.#ledger.bury(session.id)
        else this.#ledger.release(session.id)
        return
      case 'repaint':
        return
    }
  }

  #render(hosted: Hosted, attachment: string): void {
    this.#world.after(this.#world.random.int(0, 30), () => {
      const at = hosted.session.log.end
      const { cols, rows } = hosted.session.resizes.sizeAt(at)
      const snapshot = { at, cols, rows, data: screenAt(at), exact: true }
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
