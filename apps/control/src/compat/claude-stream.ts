import { z } from '@hono/zod-openapi'
import { COMPAT_SUBPROTOCOL, sandboxIdOfRun } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { TicketBinding } from '../auth/identity.ts'
import type { Ceilings } from '../ceilings/ceilings.ts'
import type { Config } from '../config.ts'
import type { GatewayGrants } from '../credentials/grants.ts'
import { checkHandshake, offeredSubprotocols } from '../http/upgrade.ts'
import { readObjectError, unwrap } from '../outcome.ts'
import { type AttachDependencies, checkTicket } from '../routes/attach.ts'
import { type App, callOf, identityOf } from '../routes/context.ts'
import { endpoint, type GuardOf } from '../routes/endpoint.ts'
import { checkScope } from '../routes/guard.ts'
import { CLAUDE } from '../run/agents.ts'
import { type RunStreamCall, RUN_URL } from '../run/call.ts'
import { createRun, type RunOrder } from '../run/create.ts'
import type { StreamOptions } from '../run/record.ts'
import type { RunView } from '../run/view.ts'
import { CALL_HEADER, type SandboxCall } from '../sandbox/call.ts'
import { noSuchSession } from '../sandbox/not-found.ts'
import { hasOwnClaude } from './capabilities.ts'
import { openClaudeExec } from './claude-exec.ts'
import { CLAUDE_STREAM_PATH, type ClaudeQuery, parseClaudeQuery } from './claude-query.ts'

/** Task of the run in lists. */
const TASK = 'A session of /ws/claude-stream'
/** How long a client that resumes waits for the program that is ending. */
const MAX_END_MS = 30_000
const POLL_MS = 250

export interface ClaudeStreamDependencies extends AttachDependencies {
  readonly config: Pick<Config, 'runs' | 'conversations' | 'provider'>
  readonly ceilings: Ceilings
  readonly grants: Pick<GatewayGrants, 'check'>
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** What a client is connected to: a run, whose agent is Claude Code. */
interface Session {
  readonly run: string
  readonly isResumed: boolean
  /** The program was started before. */
  readonly isJoin: boolean
}

/** For the OpenAPI document only; `parseClaudeQuery` decodes the query. */
const described = (description: string) => z.unknown().optional().openapi({ type: 'string', description })
const parameters = z.looseObject({
  session_id: described("The session: its id, one of its tokens, or the client's own name for it"),
  resume: described('1: continue this conversation; the program is started again if it has ended'),
  force_new: described('1: always a new conversation'),
  sandbox: described('Id or name; default: the default sandbox'),
  mode: described('ask, act (edits need no permission) or plan'),
  model: described('Model; default: the one that the operator chose'),
  allowed_tools: described('Tools that need no permission, separated by commas'),
  disallowed_tools: described('Tools that the agent does not get'),
  max_thinking_tokens: described('Most tokens that the model thinks in'),
  max_turns: described('Most requests to the model'),
  max_budget_usd: described('Most that the session may cost'),
})

/** Joins or starts sessions of `/ws/claude-stream`. */
class ClaudeSessions {
  readonly #deps: ClaudeStreamDependencies

  constructor(deps: ClaudeStreamDependencies) {
    this.#deps = deps
  }

  async open(query: ClaudeQuery, call: SandboxCall, ticket: TicketBinding | undefined): Promise<Session> {
    const { session, alias, select } = query
    if (session !== undefined) {
      const run = await this.#deps.sessionNames.resolve(session, call.identity, ['claude'])
      const sandbox = sandboxIdOfRun(run)
      if (sandbox === undefined) throw noSuchSession()
      await this.#deps.lookup.ofRun(run)
      checkTicket(ticket, { sandbox, session: run })
      return this.#joinOrContinue(run, sandbox, query, call)
    }
    if (select === 'resume' && alias === undefined) throw noSuchSession()
    // A name may mean a session that the caller may join; only the sandbox's object knows.
    if (alias === undefined || select === 'new') this.#deps.commands.checkFree(call, CLAUDE)
    const sandbox = await this.#findSandbox(query, call, ticket)
    if (alias === undefined) return this.#start(sandbox, query, call)
    const object = this.#deps.lookup.sandbox(sandbox)
    const known = select === 'new' ? null : unwrap(await object.claudeSession(call.identity, alias))
    const opened =
      known === null ? undefined : await this.#joinOrContinue(known, sandbox, query, call).catch(ifMissing)
    if (opened === undefined && select === 'resume') throw noSuchSession()
    const once = `start ${known ?? `${sandbox} ${alias}`}`
    const found = opened ?? (await this.#start(sandbox, query, call, select === 'new' ? {} : { once }))
    if (found.run !== known) unwrap(await object.claudeSession(call.identity, alias, found.run))
    return found
  }

  /** Another program for a session whose program has ended. */
  async restart({ run }: Session, query: ClaudeQuery, call: SandboxCall): Promise<Session> {
    const sandbox = await this.#deps.lookup.ofRun(run)
    await this.#until(run, call, ({ state }) => state === 'ended')
    const session = await this.#joinOrContinue(run, sandbox, query, call)
    const { alias } = query
    if (alias !== undefined)
      unwrap(await this.#deps.lookup.sandbox(sandbox).claudeSession(call.identity, alias, session.run))
    return session
  }

  /** Joins the program while it is at work; after that, a client that resumes gets another one with the same conversation. */
  async #joinOrContinue(
    run: string,
    sandbox: string,
    query: ClaudeQuery,
    call: SandboxCall,
  ): Promise<Session> {
    const { state, result } = await this.#until(
      run,
      call,
      (view) => view.state !== 'stopping' && view.state !== 'collecting',
    )
    if (state !== 'ended') return { run, isResumed: true, isJoin: true }
    // The run of a deleted sandbox still exists; a new one in it would only fail.
    const { action: _action, ...unaudited } = call
    unwrap(await this.#deps.lookup.sandbox(sandbox).lastKnown(unaudited))
    if (query.select !== 'resume') return this.#start(sandbox, query, call, { once: `start ${run}` })
    const resume = result?.agentSessionId ?? undefined
    if (resume === undefined) throw noSuchSession()
    // Several clients may resume it at the same time: after a crash all of them connect again.
    const next = await this.#start(sandbox, query, call, { resume, once: `resume ${run}` })
    return { ...next, isResumed: true }
  }

  /** The run, once it is as wanted. Throws `conflict` if that takes too long. */
  async #until(run: string, call: SandboxCall, isIt: (view: RunView) => boolean): Promise<RunView> {
    const { lookup, nowMs, sleep } = this.#deps
    const { action: _action, ...unaudited } = call
    for (const untilMs = nowMs() + MAX_END_MS; ; await sleep(POLL_MS)) {
      const view: RunView = unwrap(await lookup.run(run).describe(unaudited))
      if (isIt(view)) return view
      if (nowMs() > untilMs)
        throw new SandwireError('conflict', 'The session is still ending; connect again in a moment')
    }
  }

  /** Starts a program, for each `once` a single time: then joins or continues the one that was started. */
  async #start(
    sandbox: string,
    query: ClaudeQuery,
    call: SandboxCall,
    { resume, once }: Pick<StreamOptions, 'resume'> & { readonly once?: string } = {},
  ): Promise<Session> {
    const { limits, model, options } = query
    const { lookup, mint, config, ceilings, grants, nowMs, commands } = this.#deps
    // An agent runs any command.
    commands.checkFree(call, CLAUDE)
    const deps = { lookup, mint, settings: config.runs, ceilings, grants, nowMs }
    const creating = { ...call, action: 'run.create' } as const
    const wallClockSeconds = config.conversations.agentHours * 3_600
    const { action: _action, ...unaudited } = call
    // Not earlier than its sandbox would stop if the program did not keep it awake; sandboxd ends one without clients.
    const { sleepAfterSeconds } = unwrap(await lookup.sandbox(sandbox).lastKnown(unaudited))
    const sleepSeconds = Math.min(wallClockSeconds, sleepAfterSeconds ?? wallClockSeconds)
    const restSeconds = Math.max(config.runs.idleSeconds, sleepSeconds)
    const order: RunOrder = {
      source: { kind: 'sandbox', id: sandbox },
      task: TASK,
      agent: CLAUDE,
      model,
      permission: 'ask',
      limits,
      // People come back to a session as to a conversation.
      wallClockSeconds,
      interactive: true,
      stream: { ...options, restSeconds, ...(resume === undefined ? {} : { resume }) },
    }
    const key = once === undefined ? undefined : `${CLAUDE_STREAM_PATH} ${once}`
    const { id: run, state } = await createRun(deps, creating, order, key)
    if (state === 'queued') return { run, isResumed: false, isJoin: false }
    // It was started before.
    return this.#joinOrContinue(run, sandbox, query, call)
  }

  /** The sandbox of a new session; the default one is created if it does not exist and the caller may create it. */
  async #findSandbox(
    { sandbox, select }: ClaudeQuery,
    call: SandboxCall,
    ticket: TicketBinding | undefined,
  ): Promise<string> {
    const { lookup, defaultName } = this.#deps
    const fallback =
      ticket === undefined
        ? { by: 'name' as const, name: defaultName }
        : { by: 'id' as const, id: ticket.sandbox }
    const ref = sandbox ?? fallback
    try {
      const id = await lookup.resolve(call.identity, ref)
      checkTicket(ticket, { sandbox: id })
      const { action: _action, ...unaudited } = call
      const { access } = unwrap(await lookup.sandbox(id).lastKnown(unaudited))
      if (access === 'viewer') throw new SandwireError('forbidden', 'Cannot do this: you are a viewer')
      return id
    } catch (error) {
      const isMissing = error instanceof SandwireError && error.code === 'sandbox_not_found'
      if (!isMissing || ref.by === 'id' || select === 'resume' || ticket !== undefined) throw error
      checkScope(call, 'admin')
      return (await lookup.create(call, ref.name, lookup.defaultSettings, true)).id
    }
  }
}

/** Undefined for a session that is gone. */
function ifMissing(caught: unknown): undefined {
  const { code } = SandwireError.from(caught)
  if (code !== 'run_not_found' && code !== 'session_not_found') throw caught
}

/** For a client that resumes a session, a missing sandbox or run means that the session does not exist. */
function toMissingSession(caught: unknown): unknown {
  const { code } = SandwireError.from(caught)
  const isMissing = ['sandbox_not_found', 'sandbox_stopped', 'run_not_found'].includes(code)
  return isMissing ? noSuchSession() : caught
}

/** `/ws/claude-stream`: Claude Code over the compat API's JSON messages, which sandboxd translates, or control where the provider runs it. */
export function addClaudeStreamRoute(app: App, guardOf: GuardOf, deps: ClaudeStreamDependencies): void {
  const sessions = new ClaudeSessions(deps)

  const connect = async ({ run, isResumed, isJoin }: Session, call: SandboxCall): Promise<Response> => {
    const { lookup, sessionNames, log, metrics } = deps
    const { token } = await sessionNames.tokenOf({ id: run, mode: 'claude' }, call.identity)
    const streamCall: RunStreamCall = {
      ...call,
      what: 'claude',
      form: 'socket',
      after: 0,
      limit: 0,
      session: { name: token ?? run, isResumed, isJoin },
    }
    const headers = { upgrade: 'websocket', [CALL_HEADER]: JSON.stringify(streamCall) }
    const response = await lookup.run(run).fetch(RUN_URL, { headers })
    const isOpen = response.status === 101
    const error = isOpen ? undefined : await readObjectError(response)
    metrics.count('sandwire_attaches_total', { dialect: 'claude', outcome: error?.code ?? 'ok' })
    log.info('claude_stream', { request_id: call.requestId, run, code: error?.code ?? 'ok' })
    if (error !== undefined) throw error
    return new Response(null, { status: 101, webSocket: response.webSocket })
  }

  const openRun = async (
    query: ClaudeQuery,
    call: SandboxCall,
    ticket: TicketBinding | undefined,
  ): Promise<Response> => {
    const session = await sessions.open(query, call, ticket)
    return connect(session, call).catch(async (caught: unknown) => {
      if (!session.isJoin || SandwireError.from(caught).code !== 'run_ended') throw caught
      return connect(await sessions.restart(session, query, call), call)
    })
  }

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: CLAUDE_STREAM_PATH,
      request: { query: parameters },
      responses: {
        101: { description: 'A WebSocket with JSON messages of one session of Claude Code' },
        426: { description: 'The request is valid but not an upgrade' },
      },
    }),
    async (context) => {
      const request = context.req.raw
      const { isUpgrade } = checkHandshake(request)
      const offers = offeredSubprotocols(request.headers)
      if (isUpgrade && offers.length > 0 && !offers.includes(COMPAT_SUBPROTOCOL))
        throw new SandwireError(
          'version_unsupported',
          `Unsupported subprotocol: offer "${COMPAT_SUBPROTOCOL}" or none`,
        )
      const query = parseClaudeQuery(new URL(request.url).searchParams)
      const joins = query.session !== undefined || query.select === 'resume'
      context.set('action', joins ? 'session.join' : 'session.start')
      const { ticket } = identityOf(context)
      const caller = callOf(context)
      const call: SandboxCall = ticket?.role === 'viewer' ? { ...caller, scopes: ['connect'] } : caller
      if (isUpgrade) await deps.limits.admit(call)
      if (!isUpgrade) throw new SandwireError('upgrade_required', 'Cannot attach without a WebSocket upgrade')
      try {
        const opened = hasOwnClaude(deps.config)
          ? await openClaudeExec(query, call, ticket, deps)
          : await openRun(query, call, ticket)
        if (offers.length > 0) opened.headers.set('sec-websocket-protocol', COMPAT_SUBPROTOCOL)
        return opened
      } catch (caught) {
        throw joins ? toMissingSession(caught) : caught
      }
    },
  )
}
