import type { RunSettings } from '@sandwire/operator-settings'
import type { AgentStart } from '@sandwire/agent'
import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import type { Ceilings } from '../ceilings/ceilings.ts'
import {
  type GatewayAccess,
  type GatewayGrant,
  type GatewayGrants,
  gatewayGrantsOf,
} from '../credentials/grants.ts'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import { ensureAgentProgram } from '../run/agent-program.ts'
import {
  type AgentRequest,
  programRequests,
  readAgentError,
  requestAgent,
  sendToAgent,
} from '../run/agent-request.ts'
import { findAgent } from '../run/agents.ts'
import { agentViewSchema } from '../run/agent-responses.ts'
import { agentSandboxSettings, cloneRepository, ownerCall } from '../run/agent-sandbox.ts'
import { agentStartOf, checkModel, grantOf } from '../run/agent-start.ts'
import type { RunRequest } from '../run/record.ts'
import { startProgram } from '../run/start-program.ts'
import { HOLD_AT_START_MS, HOLD_MS } from '../run/turns.ts'
import { runtimeOf } from '../runtime.ts'
import { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { readChange, type SandboxChange } from './publish.ts'
import type { ConversationRecord } from './record.ts'
import type { ConversationSettings } from './settings.ts'
import type { ConversationInput, Failure } from './state.ts'
import type { ConversationStore } from './store.ts'
import type { Work } from './work.ts'

/** There is no room now; there may be later. */
const NO_ROOM: ReadonlySet<ErrorCode> = new Set(['ceiling_exceeded', 'too_many_sandboxes'])

/** Characters of the message that a notice quotes. */
const QUOTED_CHARS = 200

/** A step of a start is in progress. */
const NOT_YET = new SandwireError('run_not_started', 'The agent is being prepared')

export interface AgentWorkDependencies {
  readonly store: ConversationStore
  readonly lookup: SandboxLookup
  readonly ceilings: Ceilings
  readonly grants: GatewayGrants
  readonly runs: RunSettings
  readonly settings: ConversationSettings
  /** Installs the agent's program; false while that is in progress. */
  readonly ensureProgram: (agent: string) => Promise<boolean>
  readonly mintSession: (sandbox: string) => string
  readonly nowMs: () => number
}

export function failureOf(caught: unknown): Failure {
  const error = SandwireError.from(caught)
  const { code, message } = error
  return { code, message, retryable: error === NOT_YET || error.info.retryable || NO_ROOM.has(code) }
}

/** Performs a conversation's work at its sandbox. Every step can be repeated. */
export class AgentWork {
  readonly #deps: AgentWorkDependencies

  constructor(deps: AgentWorkDependencies) {
    this.#deps = deps
  }

  /** Throws the error of a failed step. `connect` is not done here, because it opens a socket. */
  async perform(work: Exclude<Work, { kind: 'connect' }>): Promise<ConversationInput> {
    switch (work.kind) {
      case 'pin':
        await this.#pin(work.isPinned)
        return { type: 'pinned', isPinned: work.isPinned }
      case 'start':
        return this.#start(work)
      case 'deliver': {
        const { id, by } = work.message
        if (!work.isHeld) return this.#hold(work, HOLD_MS)
        const body = { id, text: this.#textOf(work), by }
        await this.#json(work.run, { method: 'POST', path: '/messages', body })
        return { type: 'delivered', run: work.run, id }
      }
      case 'restore': {
        const { key, version, by } = work.restore
        const { id, sandbox } = this.#record
        const restore = { holder: id, key, version, kept: work.kept }
        const undoVersion = unwrap(await this.#deps.lookup.sandbox(sandbox).restoreWorkspace(by, restore))
        return { type: 'restored', key, undoVersion }
      }
      case 'answer':
        await this.#json(work.run, { method: 'POST', path: '/approvals', body: work.answer })
        return { type: 'answered', run: work.run, requestId: work.answer.requestId }
      case 'interrupt':
        await this.#json(work.run, { method: 'POST', path: '/interrupt' })
        return { type: 'interrupted', run: work.run }
      case 'stop':
        await this.#stop(work.run)
        return { type: 'stopped', run: work.run }
      case 'check': {
        const { state, lastSeq } = agentViewSchema.parse(
          await this.#json(work.run, { method: 'GET', path: '' }),
        )
        return { type: 'checked', run: work.run, agent: state, lastSeq }
      }
      case 'forget':
        await this.#forget(work.run)
        return { type: 'forgotten', run: work.run }
    }
  }

  /** Opens the socket of the program's events after a sequence number. */
  async connect(run: string, after: number): Promise<WebSocket> {
    const request = {
      method: 'GET',
      path: `/events?after=${after}`,
      headers: { upgrade: 'websocket' },
    } as const
    const response = await sendToAgent(this.#deps.lookup, this.#target(run), request)
    if (response.status === 101 && response.webSocket !== null) return response.webSocket
    throw await readAgentError(response)
  }

  /** Reads the files of the workspace as a change of its repository. */
  readChange(mayStart: boolean): Promise<SandboxChange> {
    return readChange(this.#deps.lookup, this.#record, mayStart)
  }

  /** Ends the agent, and destroys the sandbox if it was made for the conversation. */
  async release(runs: readonly string[]): Promise<void> {
    const { lookup, grants } = this.#deps
    const record = this.#record
    await grants.remove(record.id).catch(() => undefined)
    const sandbox = lookup.sandbox(record.sandbox)
    if (!record.isOwnSandbox) {
      for (const run of runs) await this.#forget(run).catch(() => undefined)
      unwrap(await sandbox.setRunActive(record.id, 'gone'))
      return
    }
    unwrap(await sandbox.setRunActive(record.id, 'resting'))
    const destroyed = await sandbox.destroy(ownerCall(record, 'sandbox.destroy'), record.sandbox)
    // Once the intent is stored, the sandbox's object finishes what failed.
    if (!destroyed.ok && destroyed.code === 'internal') unwrap(destroyed)
  }

  /** The sandbox is created first: only an existing one can store that an agent works in it. */
  async #pin(isPinned: boolean): Promise<void> {
    const { lookup, ceilings } = this.#deps
    const record = this.#record
    if (isPinned && record.isOwnSandbox) {
      const settings = agentSandboxSettings(ceilings, record.request.network)
      await lookup.create(ownerCall(record), nameOf(record), settings, true, record.sandbox)
    }
    unwrap(await lookup.sandbox(record.sandbox).setRunActive(record.id, isPinned ? 'working' : 'resting'))
  }

  async #start(work: Extract<Work, { kind: 'start' }>): Promise<ConversationInput> {
    const { lookup, grants, runs, ensureProgram } = this.#deps
    const record = this.#record
    const { agent } = record.request
    // A missing key is reported before a sandbox starts.
    await checkModel(grants, runs, record.request)
    // Sandboxes see what is installed when they start.
    if (!(await ensureProgram(agent))) throw NOT_YET
    unwrap(await lookup.sandbox(record.sandbox).start(ownerCall(record)))
    if (!(await this.#clone())) throw NOT_YET
    if (!work.isHeld) return this.#hold(work, HOLD_AT_START_MS)
    try {
      // An earlier attempt may have started it.
      await this.#json(work.run, { method: 'GET', path: '' })
    } catch (error) {
      if (SandwireError.from(error).code !== 'not_found') throw error
      const start = await this.#agentStart(work)
      await startProgram(programRequests(this.#deps.lookup, this.#target(work.run), start))
    }
    return { type: 'started', run: work.run }
  }

  /** Keeps the files as they are before the agent gets a message. */
  async #hold(
    { message, kept }: Extract<Work, { kind: 'start' | 'deliver' }>,
    waitMs: number,
  ): Promise<ConversationInput> {
    const { id, sandbox } = this.#record
    const held = unwrap(await this.#deps.lookup.sandbox(sandbox).holdVersion({ holder: id, kept, waitMs }))
    return { type: 'held', message: message.id, held }
  }

  /** The text of a message, after a notice when files were restored since the last one. */
  #textOf({ message, notice }: Extract<Work, { kind: 'start' | 'deliver' }>): string {
    if (notice === null) return message.text
    const { message: restored, isSure } = notice
    const what = !isSure
      ? 'A restore of the files in the workspace to an earlier state was tried, and may have happened.'
      : restored === null
        ? 'The restore of the files in the workspace was undone: they are again as they were before it.'
        : `The files in the workspace were restored to what they were when this message was sent: ${JSON.stringify(this.#quote(restored))}. Everything that was changed there since is undone.`
    return `[${what} Read files again before you rely on what you know of them.]\n\n${message.text}`
  }

  #quote(id: string): string {
    const text = this.#deps.store.messageText(id) ?? ''
    return text.length > QUOTED_CHARS ? `${text.slice(0, QUOTED_CHARS).toWellFormed()}…` : text
  }

  async #clone(): Promise<boolean> {
    const { store, lookup, mintSession } = this.#deps
    const record = this.#record
    const { source } = record.request
    if (source.kind !== 'repo' || record.isCloned) return true
    const isDone = await cloneRepository({
      lookup,
      sandbox: record.sandbox,
      call: ownerCall(record),
      source,
      session: record.cloneSession,
      access: () => this.#access(),
      mintSession,
      begun: (cloneSession) => void store.update({ cloneSession }),
    })
    if (isDone) store.update({ isCloned: true })
    return isDone
  }

  async #agentStart(work: Extract<Work, { kind: 'start' }>): Promise<AgentStart> {
    const { resume, systemPrompt } = work
    const task = this.#textOf(work)
    const prompt = [this.#record.request.systemPrompt, systemPrompt]
      .filter((text) => text !== undefined && text !== null)
      .join('\n\n')
    return {
      ...agentStartOf({ request: this.#runRequest(task) }, await this.#access(), this.#deps.runs),
      yieldsToTui: true,
      ...(resume === null ? {} : { resume }),
      ...(prompt === '' ? {} : { systemPrompt: prompt }),
    }
  }

  /** The agent of a conversation is that of an interactive run. */
  #runRequest(task: string): RunRequest {
    const { runs, settings } = this.#deps
    const { source, agent, model, permission, network, budgetUsd } = this.#record.request
    return {
      source: source.kind === 'repo' ? source : { kind: 'sandbox' },
      task,
      agent,
      ...(model === undefined ? {} : { model }),
      permission,
      network,
      keep: true,
      isInteractive: true,
      purpose: 'change',
      limits: {
        wallClockSeconds: settings.agentHours * 3_600,
        idleSeconds: runs.idleSeconds,
        approvalSeconds: runs.approvalSeconds,
        turns: runs.turns === 0 ? null : runs.turns,
        budgetUsd,
      },
    }
  }

  /** A new token; what was used with earlier ones still counts. */
  #access(): Promise<GatewayAccess> {
    const { grants, runs, nowMs } = this.#deps
    const { id, sandbox } = this.#record
    const grant: GatewayGrant = grantOf({ id, sandbox, request: this.#runRequest('') }, runs, nowMs())
    return grants.create(grant)
  }

  async #stop(run: string): Promise<void> {
    const body = { reason: 'aborted', message: 'The conversation was closed' }
    await this.#json(run, { method: 'POST', path: '/stop', body })
  }

  async #forget(run: string): Promise<void> {
    try {
      await this.#stop(run)
      await this.#json(run, { method: 'DELETE', path: '' })
    } catch (caught) {
      const { code } = SandwireError.from(caught)
      if (code === 'not_found') return
      // It is still ending.
      throw code === 'conflict' ? NOT_YET : caught
    }
  }

  #json(run: string, request: AgentRequest): Promise<unknown> {
    return requestAgent(this.#deps.lookup, this.#target(run), request)
  }

  #target(run: string) {
    return { sandbox: this.#record.sandbox, run }
  }

  get #record(): ConversationRecord {
    const record = this.#deps.store.read()
    if (record === undefined) throw new Error('There is no conversation')
    return record
  }
}

export async function openAgentWork(env: Env, store: ConversationStore): Promise<AgentWork> {
  const { config, ceilings, nowMs, keys } = runtimeOf(env)
  const { mint } = await keys()
  return new AgentWork({
    store,
    lookup: new SandboxLookup(env, mint),
    ceilings,
    grants: gatewayGrantsOf(env),
    runs: config.runs,
    settings: config.conversations,
    ensureProgram: (agent) => ensureAgentProgram(env, config, findAgent(config.runs, agent)),
    mintSession: (id) => mint.mintSession(id),
    nowMs,
  })
}

/** The name of the sandbox that is created for a conversation. */
function nameOf({ id }: Pick<ConversationRecord, 'id'>): string {
  return `chat-${id.slice(-12)}`
}
