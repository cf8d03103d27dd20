import { CLAUDE_STREAM_ENV, claudeStreamArguments } from '@sandwire/agent'
import { sandboxIdOf } from '@sandwire/internal-api'
import { type Role, SandwireError } from '@sandwire/protocol'
import type { Log } from '../../log.ts'
import { noSuchSession } from '../../sandbox/not-found.ts'
import type { Selector } from '../../sandbox/revocation.ts'
import type { SessionFacts } from '../../sandbox/session-view.ts'
import type { ProviderSessions, SessionKind, SessionRequest, SessionStart } from '../provider.ts'
import { isUnreachable, problemOf, type SpritesApi, type SpritesSettings } from './api.ts'
import { type ApiSocketDependencies, OPEN_MS, openApiSocket } from './api-socket.ts'
import { ClaudeCodec } from './claude-codec.ts'
import { ClaudeSession } from './claude-session.ts'
import { SpritesError } from './errors.ts'
import { ExecBridge } from './exec-bridge.ts'
import type { ExecCodec } from './exec-codec.ts'
import { ExecConnection } from './exec-connection.ts'
import { formatExecQuery } from './exec-frames.ts'
import { isMarkedOf, isOfSession, isSame, markOf } from './exec-marks.ts'
import type { ExecStore, StoredExec } from './exec-store.ts'
import { CLAUDE_PROFILE, SHELL_PROFILE, SPRITE_PATH, WORKSPACE } from './layout.ts'
import type { RelayedSocket } from './relay.ts'
import { TerminalCodec } from './terminal-codec.ts'

/** Sessions of one sandbox. */
const MAX_SESSIONS = 20
/** Clients of all of them. */
const MAX_ATTACHMENTS = 64
/** Characters of the command and its environment, which are part of a URL. */
const MAX_QUERY_CHARS = 16_000
/** A process that ignores SIGHUP is killed after this time. */
const HANGUP_SECONDS = 5
/** After ending terminals failed. */
const RETRY_MS = 10_000
/** Size of a terminal until its client sends one. */
const COLS = 80
const ROWS = 24

/** What the client's side of a connection calls. */
export interface ClientHandlers {
  readonly message: (message: string | Uint8Array) => void
  readonly closed: (code: number, reason: string) => void
}

export interface ExecSessionsDependencies extends ApiSocketDependencies {
  readonly settings: SpritesSettings
  readonly api: SpritesApi
  readonly store: ExecStore
  readonly sprite: () => string
  readonly log: Log
  readonly count: (metric: string, labels: Readonly<Record<string, string>>) => void
  /** Makes the WebSocket of a client and the response that opens it. */
  readonly acceptClient: (handlers: ClientHandlers) => {
    readonly socket: RelayedSocket
    readonly response: Response
  }
  /** Keeps the object alive until the work is done. */
  readonly hold: (work: Promise<unknown>) => void
  /** Has `collect` called at this time or sooner. */
  readonly wakeBy: (atMs: number) => void
  readonly yieldTurn: () => Promise<void>
  readonly mintId: () => string
  /** Adds what closes a connection when all must close; returns what to call when it has ended. */
  readonly register: (close: () => void) => () => void
}

interface Attachment {
  readonly session: string
  readonly authorization: SessionRequest['authorization']
  readonly userName: string
  readonly bridge: ExecBridge
}

/** What this instance has observed of a session. */
interface SessionActivity {
  inputMs: number | null
  outputMs: number | null
  outputBytes: number
  /** Time of the last attach, input or output. */
  activeMs: number
}

/**
 * Terminals and agents of the compat API in a sprite, as processes of its exec API. Each client has a connection of its own to the
 * process, so that nothing is buffered here and the object may be evicted. A process outlives its clients by `keepSeconds`.
 */
export class ExecSessions implements ProviderSessions {
  readonly #deps: ExecSessionsDependencies
  readonly #attachments = new Set<Attachment>()
  readonly #activity = new Map<string, SessionActivity>()
  readonly #claude = new Map<string, ClaudeSession>()
  /** Attaches in progress count as attachments. */
  #opening = 0
  #hasAdopted = false
  /** After a failure, `collect` is due again at this time. */
  #retryMs = 0

  constructor(deps: ExecSessionsDependencies) {
    this.#deps = deps
  }

  has(session: string): boolean {
    return this.#deps.store.find(session) !== undefined
  }

  async open(request: SessionRequest): Promise<Response> {
    const { count } = this.#deps
    this.#adopt()
    const kind = request.start === undefined ? 'attach' : 'start'
    if (this.#attachments.size + this.#opening >= MAX_ATTACHMENTS)
      throw new SandwireError('too_many_attachments', 'Too many clients are attached to this sandbox')
    this.#opening += 1
    try {
      const response = await this.#open(request)
      count('sandwire_sprites_exec_attaches_total', { kind, outcome: 'ok' })
      return response
    } catch (error) {
      count('sandwire_sprites_exec_attaches_total', { kind, outcome: SandwireError.from(error).code })
      throw error
    } finally {
      this.#opening -= 1
    }
  }

  list(): readonly SessionFacts[] {
    return this.#deps.store.all().map((exec) => this.#describe(exec))
  }

  async end(session: string): Promise<void> {
    const stored = this.#deps.store.find(session)
    if (stored !== undefined) await this.#endAll([stored])
  }

  async endAll(): Promise<void> {
    const all = this.#deps.store.all()
    if (all.length > 0) await this.#endAll(all)
  }

  /** The processes are gone. */
  clear(): void {
    this.#deps.store.clear()
    this.#activity.clear()
    this.#claude.clear()
  }

  disconnect({ identity, session, grant, login, endSessions }: Selector): void {
    const { store, hold } = this.#deps
    const matches = (wanted: string | undefined, value: string | undefined): boolean =>
      wanted === undefined || wanted === value
    for (const attachment of this.#attachments) {
      const { authorization } = attachment
      if (
        matches(identity, authorization.identity) &&
        matches(session, attachment.session) &&
        matches(grant, authorization.grant) &&
        matches(login, authorization.login)
      )
        attachment.bridge.end(new SandwireError('revoked', 'Access to the sandbox was revoked'))
    }
    if (endSessions !== true || grant === undefined) return
    const started = store.all().filter((exec) => exec.grant === grant)
    // A process that cannot be ended now ends with its clients, after `keepSeconds`.
    if (started.length > 0) hold(this.#endAll(started).catch(() => undefined))
  }

  nextMs(): number | undefined {
    const times = this.#deps.store
      .all()
      .map((exec) => this.#deadlineOf(exec))
      .filter((time) => time !== undefined)
    return times.length === 0 ? undefined : Math.max(Math.min(...times), this.#retryMs)
  }

  /** Ends the sessions whose time is over: without a client for too long, idle, or too old. */
  async collect(): Promise<void> {
    const { store, nowMs } = this.#deps
    this.#adopt()
    const due = store.all().filter((exec) => (this.#deadlineOf(exec) ?? Number.POSITIVE_INFINITY) <= nowMs())
    if (due.length === 0 || nowMs() < this.#retryMs) return
    this.#retryMs = nowMs() + RETRY_MS
    await this.#endAll(due)
    this.#retryMs = 0
  }

  /** Clients of an earlier instance of the object are gone. */
  #adopt(): void {
    if (this.#hasAdopted) return
    this.#hasAdopted = true
    const { store, nowMs } = this.#deps
    for (const { session, detachedMs } of store.all())
      if (detachedMs === undefined) store.setDetached(session, nowMs())
  }

  async #open(request: SessionRequest): Promise<Response> {
    const { store, hold, nowMs } = this.#deps
    const { session, start } = request
    const stored = store.find(session)
    if (stored !== undefined && stored.kind !== request.kind) throw noSuchSession()
    const isNew = stored?.known === undefined
    const exec =
      stored?.known !== undefined
        ? await this.#attach(stored, stored.known, request.requestId)
        : await this.#start(request, start)
    const { bridge, response } = this.#accept(request, exec, isNew)
    store.setDetached(session, undefined)
    this.#activityOf(session).activeMs = nowMs()
    hold(bridge.run())
    return response
  }

  #accept(
    request: SessionRequest,
    exec: ExecConnection,
    isNew: boolean,
  ): { readonly bridge: ExecBridge; readonly response: Response } {
    const { acceptClient, nowMs, every, yieldTurn, register, count, hold } = this.#deps
    const { session, userName, authorization, heartbeatSeconds } = request
    const { socket, response } = acceptClient({
      message: (message) => bridge.receive(message),
      closed: (code) => bridge.clientClosed(code),
    })
    const codec = this.#codecOf(request, exec, isNew)
    const bridge: ExecBridge = new ExecBridge(socket, exec, codec, {
      nowMs,
      every,
      yieldTurn,
      heartbeatMs: heartbeatSeconds * 1000,
      onActivity: (kind, bytes) => this.#active(session, kind, bytes),
      onExit: () => this.#forget(session),
      onRefuse: () => hold(this.end(session).catch(() => undefined)),
      toOthers: (text) => {
        for (const other of this.#attachments)
          if (other.session === session && other !== attachment) other.bridge.notify(text)
      },
      onEnd: (code) => {
        unregister()
        count('sandwire_sprites_disconnects_total', { code: String(code) })
        this.#attachments.delete(attachment)
        this.#detached(session)
      },
    })
    const attachment: Attachment = { session, authorization, userName, bridge }
    const unregister = register(() =>
      bridge.end(new SandwireError('sandbox_unreachable', 'The connection to the session was closed')),
    )
    this.#attachments.add(attachment)
    return { bridge, response }
  }

  #codecOf(request: SessionRequest, { info }: ExecConnection, isNew: boolean): ExecCodec {
    const { store, mintId } = this.#deps
    const { session, name, kind } = request
    const stored = store.find(session)
    const role = roleOf(request, stored)
    const { historyBytes } = info
    const replay = isNew || historyBytes === 0 ? 'none' : historyBytes === undefined ? 'possible' : 'expected'
    if (kind === 'pty') return new TerminalCodec(name, role, replay)
    return new ClaudeCodec({
      name,
      session: this.#claudeOf(session, stored?.state),
      isNew,
      historyBytes,
      mayInput: role !== 'viewer',
      mintId,
    })
  }

  #claudeOf(session: string, state: string | undefined): ClaudeSession {
    const known = this.#claude.get(session)
    if (known !== undefined) return known
    const save = (changed: string): void => this.#deps.store.setState(session, changed)
    const opened = new ClaudeSession(state ?? ClaudeSession.begin({}), save)
    this.#claude.set(session, opened)
    return opened
  }

  /** Its process has ended. */
  #forget(session: string): void {
    this.#deps.store.remove(session)
    this.#activity.delete(session)
    this.#claude.delete(session)
  }

  async #start(request: SessionRequest, start: SessionStart | undefined): Promise<ExecConnection> {
    const { store, log, nowMs } = this.#deps
    const { session, kind, requestId, authorization } = request
    if (start === undefined) throw noSuchSession()
    if (store.all().filter((exec) => exec.session !== session).length >= MAX_SESSIONS)
      throw new SandwireError(
        'too_many_sessions',
        `Cannot start a session: ${MAX_SESSIONS} sessions are running in this sandbox`,
      )
    const { template, cmd, keepSeconds, lifetimeSeconds, idleSeconds } = start
    store.insert({
      session,
      kind,
      template,
      cmd: cmd ?? 'bash',
      grant: authorization.grant,
      createdMs: nowMs(),
      keepSeconds,
      lifetimeSeconds,
      idleSeconds,
      state: kind === 'claude' ? ClaudeSession.begin(start.claude ?? {}) : undefined,
    })
    try {
      const exec = await this.#create(session, kind, start, requestId)
      store.setKnown(session, exec.info)
      const profile = kind === 'claude' ? 'claude' : 'shell'
      log.info('exec_started', { request_id: requestId, session, template: template ?? profile })
      return exec
    } catch (error) {
      this.#forget(session)
      throw error
    }
  }

  async #create(
    session: string,
    kind: SessionKind,
    start: SessionStart,
    requestId: string,
  ): Promise<ExecConnection> {
    const { api, settings, sprite } = this.#deps
    const isTty = kind === 'pty'
    const query = formatExecQuery({
      argv: ['env', markOf(session), ...commandOf(kind, start)],
      env: {
        PATH: SPRITE_PATH,
        LANG: 'C.UTF-8',
        SHELL: '/bin/bash',
        ...start.env,
        ...(isTty ? { TERM: 'xterm-256color' } : CLAUDE_STREAM_ENV),
      },
      dir: start.cwd === undefined ? WORKSPACE : `${WORKSPACE}/${start.cwd}`,
      isTty,
      cols: COLS,
      rows: ROWS,
      keepSeconds: start.keepSeconds,
    })
    if (query.length > MAX_QUERY_CHARS)
      throw new SandwireError(
        'frame_too_large',
        `Cannot start a session: its command and environment are over ${MAX_QUERY_CHARS} characters in a URL`,
      )
    const target = `/v1/sprites/${sprite()}/exec?${query}`
    try {
      return await api.open(
        async () =>
          ExecConnection.open(
            await openApiSocket(settings, { target, requestId }, this.#deps),
            isTty,
            OPEN_MS,
          ),
        // Refused before anything was started.
        (error) => error instanceof SpritesError && isUnreachable(error),
      )
    } catch (error) {
      if (!isUnreachable(error)) throw error
      // The process may have been started though its connection broke.
      const started = (await api.execs(sprite())).find((exec) => isOfSession(exec, session))
      if (started === undefined) throw error
      const known = { id: started.id, createdSeconds: Math.floor(started.createdMs / 1000) }
      return this.#attach({ session, kind }, known, requestId)
    }
  }

  async #attach(
    { session, kind }: Pick<StoredExec, 'session' | 'kind'>,
    { id, createdSeconds }: NonNullable<StoredExec['known']>,
    requestId: string,
  ): Promise<ExecConnection> {
    const { api, settings, sprite } = this.#deps
    const target = `/v1/sprites/${sprite()}/exec/${id}?stdin=true`
    const refusalOf = (status: number): Error =>
      status === 404 || status === 410 ? noSuchSession() : problemOf(status)
    try {
      const exec = await api.open(
        async () =>
          ExecConnection.open(
            await openApiSocket(settings, { target, requestId }, this.#deps, refusalOf),
            kind === 'pty',
            OPEN_MS,
          ),
        isUnreachable,
      )
      if (exec.info.id === id && exec.info.createdSeconds === createdSeconds) return exec
      // Another process has got the id.
      exec.close()
      throw noSuchSession()
    } catch (error) {
      if (SandwireError.from(error).code === 'session_not_found') this.#forget(session)
      throw error
    }
  }

  #activityOf(session: string): SessionActivity {
    const known = this.#activity.get(session)
    if (known !== undefined) return known
    const made = { inputMs: null, outputMs: null, outputBytes: 0, activeMs: this.#deps.nowMs() }
    this.#activity.set(session, made)
    return made
  }

  #active(session: string, kind: 'input' | 'output', bytes: number): void {
    const activity = this.#activityOf(session)
    const nowMs = this.#deps.nowMs()
    activity.activeMs = nowMs
    if (kind === 'input') activity.inputMs = nowMs
    else {
      activity.outputMs = nowMs
      activity.outputBytes += bytes
    }
  }

  #detached(session: string): void {
    const { store, nowMs, wakeBy } = this.#deps
    if ([...this.#attachments].some((other) => other.session === session)) return
    store.setDetached(session, nowMs())
    const stored = store.find(session)
    const deadlineMs = stored === undefined ? undefined : this.#deadlineOf(stored)
    if (deadlineMs !== undefined) wakeBy(deadlineMs)
  }

  /** When the session is ended; undefined: only on request. */
  #deadlineOf(exec: StoredExec): number | undefined {
    const { createdMs, detachedMs, keepSeconds, lifetimeSeconds, idleSeconds, session } = exec
    const times = [
      ...(lifetimeSeconds === 0 ? [] : [createdMs + lifetimeSeconds * 1000]),
      ...(detachedMs === undefined ? [] : [detachedMs + keepSeconds * 1000]),
      ...(detachedMs !== undefined || idleSeconds === 0
        ? []
        : [(this.#activity.get(session)?.activeMs ?? createdMs) + idleSeconds * 1000]),
    ]
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Ends processes, and those of this sandbox that are not stored. A process without its entry cannot be attached to again. */
  async #endAll(execs: readonly StoredExec[]): Promise<void> {
    const { api, sprite, store, log } = this.#deps
    const status = await api.sprite(sprite())
    if (status === undefined || status === 'cold') return this.clear()
    const running = await api.execs(sprite())
    const sandboxes = new Set(execs.map(({ session }) => sandboxIdOf(session) ?? ''))
    const known = store.all()
    const orphans = running.filter(
      (each) => isMarkedOf(each, sandboxes) && !known.some(({ session }) => isOfSession(each, session)),
    )
    const due = execs.flatMap((exec) => running.filter((each) => isSame(exec, each)))
    await Promise.all(
      [...due, ...orphans].map(({ id }) => api.signalExec(sprite(), id, 'SIGHUP', HANGUP_SECONDS)),
    )
    for (const { session } of execs) {
      this.#forget(session)
      log.info('exec_ended', { session })
    }
  }

  #describe({ session, kind, cmd, createdMs, keepSeconds }: StoredExec): SessionFacts {
    const attached = [...this.#attachments].filter((attachment) => attachment.session === session)
    const { inputMs = null, outputMs = null, outputBytes = 0 } = this.#activity.get(session) ?? {}
    return {
      id: session,
      state: 'running',
      mode: kind === 'pty' ? 'pty' : 'pipe',
      cmd,
      attachments: attached.length,
      people: attached.map(({ userName }) => userName),
      output: { start: 0, end: outputBytes },
      createdMs,
      lastInputMs: inputMs,
      lastOutputMs: outputMs,
      keepSeconds,
      pinned: false,
      exit: null,
    }
  }
}

/** What is started: a command of the operator, or a profile of the sprite. Clients choose options of Claude Code, never text of a command line. */
function commandOf(kind: SessionKind, { cmd, args, claude = {} }: SessionStart): readonly string[] {
  if (kind === 'claude') return [CLAUDE_PROFILE, ...claudeStreamArguments(claude)]
  return cmd === undefined ? [SHELL_PROFILE] : [cmd, ...args]
}

/** A template's terminal takes input also of callers who may not run commands of their own. */
function roleOf({ authority, templateRole }: SessionRequest, stored: StoredExec | undefined): Role {
  return stored?.template !== undefined && templateRole !== undefined ? templateRole : authority
}
