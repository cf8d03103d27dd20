import { DurableObject } from 'cloudflare:workers'
import { SandwireError } from '@sandwire/protocol'
import type { Env } from '../env.ts'
import { respondError } from '../http/respond.ts'
import { type Outcome, settle, unwrap } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import type { SandboxCall } from './call.ts'
import { openParts, type SandboxParts } from './parts.ts'
import { callOfHeader, passThrough } from './pass-through.ts'
import type { SandboxRecord, SandboxView } from './record.ts'
import type { SessionFacts } from './session-view.ts'
import type { ExecResult, OutputPart, ProcessRequest } from './sessions.ts'
import { SandboxStore } from './store.ts'

/** One sandbox: who owns it, where it is in its life, and the way into it. */
export class SandboxObject extends DurableObject<Env> {
  readonly #store: SandboxStore
  #parts: Promise<SandboxParts> | undefined

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#store = new SandboxStore(ctx.storage.sql)
    runtimeOf(env).metrics.count('sandwire_objects_constructed_total', { class: 'sandbox' })
  }

  create(record: Pick<SandboxRecord, 'id' | 'owner' | 'name' | 'settings'>): Promise<Outcome<SandboxView>> {
    return this.#run(({ life }) => life.create(record))
  }

  describe(call: SandboxCall): Promise<Outcome<SandboxView>> {
    return this.#act(call, async ({ life }) => {
      if (life.own(call.identity).state.is === 'running') await life.observe(call.requestId)
    })
  }

  start(call: SandboxCall): Promise<Outcome<SandboxView>> {
    return this.#act(call, ({ life }) => life.start(call.requestId))
  }

  stop(call: SandboxCall, discard: boolean): Promise<Outcome<SandboxView>> {
    return this.#act(call, ({ life }) => life.stop(call.requestId, discard))
  }

  destroy(call: SandboxCall, sandbox: string): Promise<Outcome<void>> {
    return this.#run(({ life }) => life.destroy(call.identity, sandbox, call.requestId))
  }

  /** Stored now, given to processes from the next start on. */
  setEnvVars(call: SandboxCall, env: Readonly<Record<string, string>>): Promise<Outcome<SandboxView>> {
    return this.#act(call, ({ life }) => {
      this.#store.setSettings({ ...life.own(call.identity).settings, env })
      return life.publish()
    })
  }

  logs(call: SandboxCall, maxBytes: number): Promise<Outcome<string>> {
    return this.#run(({ life, provider }) =>
      provider.logs(life.own(call.identity).id, maxBytes, call.requestId),
    )
  }

  startProcess(
    call: SandboxCall,
    session: string,
    request: ProcessRequest,
    pinned: boolean,
  ): Promise<Outcome<SessionFacts>> {
    return this.#run(({ sessions }) => sessions.startProcess(call, session, request, pinned))
  }

  exec(
    call: SandboxCall,
    session: string,
    request: ProcessRequest,
    timeoutMs: number,
  ): Promise<Outcome<ExecResult>> {
    return this.#run(({ sessions }) => sessions.exec(call, session, request, timeoutMs))
  }

  /** Reads what runs now and brings the account's index up to date; wakes nothing. */
  refreshSessions(call: SandboxCall): Promise<Outcome<void>> {
    return this.#run(async ({ life, sessions }) => {
      const options = { mayStart: false, isIdempotent: true }
      await sessions.reach(call, options, (running) => life.readActivity(running, call.requestId))
    })
  }

  showSession(call: SandboxCall, session: string): Promise<Outcome<SessionFacts>> {
    return this.#run(({ sessions }) => sessions.showPinned(call, session))
  }

  endSession(call: SandboxCall, session: string): Promise<Outcome<SessionFacts>> {
    return this.#run(({ sessions }) => sessions.end(call, session))
  }

  /** Marks a session as one to keep the sandbox awake for, or no longer. */
  pinSession(call: SandboxCall, session: string, pinned: boolean): Promise<Outcome<void>> {
    return this.#run(({ sessions }) => sessions.pin(call, session, pinned))
  }

  sessionOutput(call: SandboxCall, session: string, from: number): Promise<Outcome<OutputPart>> {
    return this.#run(({ sessions }) => sessions.output(call, session, from))
  }

  /** The way in: an upgrade with an attach call; answers sandboxd's 101 or an error. */
  override fetch(request: Request): Promise<Response> {
    return this.wsConnect(request)
  }

  async wsConnect(request: Request): Promise<Response> {
    const call = callOfHeader(request.headers)
    const options = { mayStart: call.session !== undefined, isIdempotent: call.isIdempotent }
    const outcome = await this.#run(({ sessions }) =>
      sessions.reach(call, options, ({ address }, sandboxd) => {
        // Joining is no activity: a forgotten tab that reconnects would keep the sandbox awake.
        if (options.mayStart) this.#store.touch(Date.now())
        return passThrough(address, sandboxd, call)
      }),
    )
    if (outcome.ok) return outcome.value
    return respondError(new SandwireError(outcome.code, outcome.message), call.requestId)
  }

  /** The object's one alarm, which rings while the sandbox runs. */
  override async alarm(): Promise<void> {
    unwrap(await this.#run(({ life }) => life.look(crypto.randomUUID())))
  }

  /** Does something with the caller's own sandbox and shows how it is then. */
  #act(call: SandboxCall, act: (parts: SandboxParts) => Promise<void>): Promise<Outcome<SandboxView>> {
    return this.#run(async (parts) => {
      parts.life.own(call.identity)
      await act(parts)
      return parts.life.view(parts.life.own(call.identity))
    })
  }

  #run<T>(run: (parts: SandboxParts) => T | Promise<T>): Promise<Outcome<T>> {
    const { log } = runtimeOf(this.env)
    this.#parts ??= openParts(this.ctx, this.env, this.#store)
    const parts = this.#parts
    return settle(
      async () => run(await parts),
      (cause) => log.error('sandbox_fault', { cause: String(cause) }),
    )
  }
}
