import { type AgentStart, MAX_RANGE_EVENTS } from '@sandwire/agent'
import { SandwireError } from '@sandwire/protocol'
import type { Ceilings } from '../ceilings/ceilings.ts'
import type { GatewayAccess } from '../credentials/grants.ts'
import { unwrap } from '../outcome.ts'
import type { AgentCall } from '../sandbox/agents.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import {
  type AgentRequest,
  programRequests,
  readAgentError,
  requestAgent,
  sendToAgent,
} from './agent-request.ts'
import { agentViewSchema, eventRangeSchema, runResultSchema } from './agent-responses.ts'
import { agentSandboxSettings, cloneRepository, ownerCall } from './agent-sandbox.ts'
import type { RunSandbox } from './lifecycle.ts'
import type { RunRecord, RunRestore, RunSource } from './record.ts'
import { startProgram } from './start-program.ts'
import type { RunStore } from './store.ts'
import { addTurn, HOLD_AT_START_MS, HOLD_MS, keptVersions, TASK } from './turns.ts'

export interface RunSandboxDependencies {
  readonly store: RunStore
  readonly lookup: SandboxLookup
  readonly ceilings: Ceilings
  /** A new token of the run, with the environment that uses it. */
  readonly access: () => Promise<GatewayAccess>
  readonly mintSession: (sandbox: string) => string
}

/** The name of the sandbox that is created for a run. */
function nameOf({ id }: Pick<RunRecord, 'id'>): string {
  return `run-${id.slice(-12)}`
}

/** True when the sandbox exists for the run alone. */
function isOwn({ source }: { readonly source: RunSource }): boolean {
  return source.kind === 'repo'
}

/** The sandbox of a run, through its object. */
export class RunSandboxClient implements RunSandbox {
  readonly #deps: RunSandboxDependencies

  constructor(deps: RunSandboxDependencies) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    const { lookup } = this.#deps
    const record = this.#record
    const call = ownerCall(record)
    if (isOwn(record.request))
      await lookup.create(
        call,
        nameOf(record),
        agentSandboxSettings(this.#deps.ceilings, record.request.network),
        true,
        record.sandbox,
      )
    const sandbox = this.#sandbox
    unwrap(await sandbox.setRunActive(record.id, 'working'))
    unwrap(await sandbox.start(call))
  }

  async clone(): Promise<boolean> {
    const { store, lookup, access, mintSession } = this.#deps
    const record = this.#record
    const { source } = record.request
    if (source.kind !== 'repo') return true
    return cloneRepository({
      lookup,
      sandbox: record.sandbox,
      call: ownerCall(record),
      source,
      session: record.cloneSession,
      access,
      mintSession,
      begun: (cloneSession) => void store.update({ cloneSession }),
    })
  }

  async stop(): Promise<void> {
    unwrap(await this.#sandbox.stop(ownerCall(this.#record), true))
  }

  async release(): Promise<void> {
    const record = this.#record
    const sandbox = this.#sandbox
    unwrap(await sandbox.setRunActive(record.id, 'resting'))
    if (record.request.keep) return
    const destroyed = await sandbox.destroy(ownerCall(record, 'sandbox.destroy'), record.sandbox)
    // Once the intent is stored, the sandbox's object finishes what failed.
    if (!destroyed.ok && destroyed.code === 'internal') unwrap(destroyed)
  }

  async view() {
    return agentViewSchema.parse(await this.json('GET', ''))
  }

  async hold(message: string): Promise<void> {
    const { store } = this.#deps
    const { id, request, turns = [], undoVersions = [] } = this.#record
    // Messages of a session of `/ws/claude-stream` do not pass here, so that there is none to go back to.
    const isKept = request.keep && request.stream === undefined
    if (!isKept || turns.some((turn) => turn.message === message)) return
    const waitMs = message === TASK ? HOLD_AT_START_MS : HOLD_MS
    const kept = keptVersions({ turns, undoVersions })
    const held = unwrap(await this.#sandbox.holdVersion({ holder: id, kept, waitMs }))
    store.update({ turns: addTurn(turns, { message, ...held }) })
  }

  /** Restores the workspace; returns the version of the files from before. */
  async restore({ key, version, by }: RunRestore): Promise<number> {
    const { id, turns = [], undoVersions = [] } = this.#record
    const kept = keptVersions({ turns, undoVersions })
    return unwrap(await this.#sandbox.restoreWorkspace(by, { holder: id, key, version, kept }))
  }

  /** Gives up the versions that the run kept. */
  async releaseVersions(): Promise<void> {
    const { id, turns = [] } = this.#record
    if (turns.length > 0) unwrap(await this.#sandbox.setRunActive(id, 'gone'))
  }

  async startAgent(start: AgentStart) {
    return agentViewSchema.parse(await startProgram(programRequests(this.#deps.lookup, this.#target, start)))
  }

  async events(after: number) {
    return eventRangeSchema.parse(await this.json('GET', `/events?after=${after}&limit=${MAX_RANGE_EVENTS}`))
  }

  async stopAgent(reason: string, message: string) {
    return agentViewSchema.parse(await this.json('POST', '/stop', { reason, message }))
  }

  async result() {
    return runResultSchema.parse(await this.json('GET', '/result'))
  }

  diff(): Promise<ReadableStream | undefined> {
    return this.#stream('/diff')
  }

  pack(): Promise<ReadableStream | undefined> {
    return this.#stream('/pack')
  }

  async #stream(path: string): Promise<ReadableStream | undefined> {
    const response = await this.send({ method: 'GET', path })
    if (response.ok) return response.body ?? new Response('').body ?? undefined
    const error = await readAgentError(response)
    if (error.code === 'not_found') return undefined
    throw error
  }

  /** The JSON of a request for the run's agent; `path` follows the run's id. */
  json(method: AgentCall['method'], path: string, body?: unknown): Promise<unknown> {
    const request = { method, path, ...(body === undefined ? {} : { body }) }
    return requestAgent(this.#deps.lookup, this.#target, request)
  }

  /** Sends a request for the run's agent to its sandbox's object, for control itself or for an account that reads events. */
  send(request: AgentRequest): Promise<Response> {
    return sendToAgent(this.#deps.lookup, this.#target, request)
  }

  get #target() {
    const { id, sandbox } = this.#record
    return { run: id, sandbox }
  }

  get #record(): RunRecord {
    const record = this.#deps.store.read()
    if (record === undefined) throw new SandwireError('run_not_found', 'No run has this id')
    return record
  }

  get #sandbox() {
    return this.#deps.lookup.sandbox(this.#record.sandbox)
  }
}
