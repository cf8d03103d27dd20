import { MAX_RANGE_EVENTS } from '@sandwire/agent'
import { isErrorCode, SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { type Ceilings, defaultSettings } from '../ceilings/ceilings.ts'
import { SCOPES } from '../auth/identity.ts'
import type { Action } from '../audit/actions.ts'
import type { GatewayAccess } from '../credentials/grants.ts'
import { withDeadline } from '../http/deadline.ts'
import { readBoundedJson } from '../http/read-bounded.ts'
import { CODE_HEADER } from '../http/respond.ts'
import { readObjectError, unwrap } from '../outcome.ts'
import { unreachable } from '../providers/upstream.ts'
import { AGENTS_URL, type AgentCall } from '../sandbox/agents.ts'
import { CALL_HEADER, type SandboxCall } from '../sandbox/call.ts'
import type { SandboxSettings } from '../sandbox/record.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { invalidResponse } from '../sandbox/sandboxd-client.ts'
import { agentViewSchema, eventRangeSchema, runResultSchema } from './agent-responses.ts'
import type { RunSandbox } from './lifecycle.ts'
import type { RunRecord, RunSource } from './record.ts'
import type { RunStore } from './store.ts'

/** What an agent and the tools it runs need; see the limits of runs in docs/agents.md. */
const RUN_LIMITS = {
  memoryBytes: 2 * 1024 ** 3,
  milliCpus: 2_000,
  pids: 512,
  diskBytes: 2 * 1024 ** 3,
} as const

const REQUEST_MS = 30_000
/** A range of events is about 1 MiB, and one event may exceed it. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024
/** How long the session of a clone is kept, so that its output can be read. */
const CLONE_KEEP_SECONDS = 600
/** How git shows a line of the gateway's refusal. */
const REFUSAL = 'remote: Sandwire: '
/** Longest message of a failed clone. */
const MAX_PROBLEM_CHARS = 500

/** Clones into the workspace, which is the working directory. The arguments are not part of the script. */
const CLONE_SCRIPT = 'git clone --quiet -- "$1" . && { [ -z "$2" ] || git checkout --quiet "$2" --; }'

const errorBody = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

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

/** The call of a run's owner, on whose behalf control acts. */
export function ownerCall(
  { owner, ownerName }: Pick<RunRecord, 'owner' | 'ownerName'>,
  action?: Action,
): SandboxCall {
  return {
    identity: owner,
    name: ownerName,
    scopes: SCOPES.filter((scope) => scope !== 'operator'),
    address: '',
    requestId: crypto.randomUUID(),
    ...(action === undefined ? {} : { action }),
  }
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
      await lookup.create(call, nameOf(record), this.#settings(record), true, record.sandbox)
    const sandbox = this.#sandbox
    unwrap(await sandbox.setRunActive(record.id, true))
    unwrap(await sandbox.start(call))
  }

  async clone(): Promise<boolean> {
    const { store, access, mintSession } = this.#deps
    const record = this.#record
    const { source } = record.request
    if (source.kind !== 'repo') return true
    const call = ownerCall(record)
    const sandbox = this.#sandbox
    if (record.cloneSession === null) {
      const session = mintSession(record.sandbox)
      const { env } = await access()
      const args = ['-c', CLONE_SCRIPT, 'clone', source.repo, source.ref ?? '']
      const request = {
        createId: crypto.randomUUID().replaceAll('-', ''),
        cmd: 'sh',
        args,
        env,
        mode: 'pipe',
        overflow: 'trim',
        keep: CLONE_KEEP_SECONDS,
      } as const
      unwrap(await sandbox.startProcess(call, session, request, {}))
      store.update({ cloneSession: session })
      return false
    }
    const { exit } = unwrap(await sandbox.showSession(call, record.cloneSession))
    if (exit === null) return false
    if (exit.code === 0) return true
    const { bytes } = unwrap(await sandbox.sessionOutput(call, record.cloneSession, 0))
    throw new SandwireError('git_failed', `Cannot clone the repository: ${describeClone(bytes)}`)
  }

  async stop(): Promise<void> {
    unwrap(await this.#sandbox.stop(ownerCall(this.#record), true))
  }

  async release(): Promise<void> {
    const record = this.#record
    const sandbox = this.#sandbox
    unwrap(await sandbox.setRunActive(record.id, false))
    if (record.request.keep) return
    const destroyed = await sandbox.destroy(ownerCall(record, 'sandbox.destroy'), record.sandbox)
    // Once the intent is stored, the sandbox's object finishes what failed.
    if (!destroyed.ok && destroyed.code === 'internal') unwrap(destroyed)
  }

  async view() {
    return agentViewSchema.parse(await this.json('GET', ''))
  }

  async startAgent(start: unknown) {
    return agentViewSchema.parse(await this.json('PUT', '', start))
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
    const error = await readError(response)
    if (error.code === 'not_found') return undefined
    throw error
  }

  /** The JSON of a request for the run's agent; `path` follows the run's id. */
  json(method: AgentCall['method'], path: string, body?: unknown): Promise<unknown> {
    const late = { ms: REQUEST_MS, late: () => unreachable() }
    return withDeadline(late, async (signal) => {
      const response = await this.send({ method, path, ...(body === undefined ? {} : { body }) })
      if (!response.ok) throw await readError(response)
      const value = await readBoundedJson(response, MAX_RESPONSE_BYTES, signal)
      if (value === undefined) throw invalidResponse()
      return value
    })
  }

  /** Sends a request for the run's agent to its sandbox's object, for control itself or for an account that reads events. */
  send({
    method,
    path,
    body,
    headers = {},
    viewer,
  }: {
    readonly method: AgentCall['method']
    readonly path: string
    readonly body?: unknown
    readonly headers?: Readonly<Record<string, string>>
    readonly viewer?: SandboxCall
  }): Promise<Response> {
    const { id } = this.#record
    const call: AgentCall = {
      run: id,
      requestId: viewer?.requestId ?? crypto.randomUUID(),
      method,
      path: `/agents/${id}${path}`,
      mayStart: viewer === undefined,
      headers,
      ...(viewer === undefined ? {} : { viewer }),
    }
    return this.#sandbox.fetch(AGENTS_URL, {
      method: method === 'GET' ? 'GET' : 'POST',
      headers: {
        [CALL_HEADER]: JSON.stringify(call),
        ...(headers['upgrade'] === undefined ? {} : { upgrade: headers['upgrade'] }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }

  #settings({ request }: RunRecord): SandboxSettings {
    const { ceilings } = this.#deps
    const { sandbox } = ceilings
    return {
      ...defaultSettings(ceilings),
      network: request.network,
      limits: {
        memoryBytes: Math.min(RUN_LIMITS.memoryBytes, sandbox.memoryBytes),
        milliCpus: Math.min(RUN_LIMITS.milliCpus, sandbox.milliCpus),
        pids: Math.min(RUN_LIMITS.pids, sandbox.pids),
        diskBytes: Math.min(RUN_LIMITS.diskBytes, sandbox.diskBytes),
      },
    }
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

/** Why git could not clone. Where the gateway says why, git adds only the gateway's address. */
function describeClone(output: ArrayBuffer): string {
  const lines = new TextDecoder().decode(output).trim().split('\n')
  const refusals = lines.filter((line) => line.startsWith(REFUSAL)).map((line) => line.slice(REFUSAL.length))
  return (refusals.length > 0 ? refusals : lines).join(' ').slice(-MAX_PROBLEM_CHARS)
}

/** The error of a response: of the sandbox's object, or of sandboxd. */
async function readError(response: Response): Promise<SandwireError> {
  if (response.headers.has(CODE_HEADER)) return readObjectError(response)
  const parsed = errorBody.safeParse(await readBoundedJson(response, 16 * 1024))
  if (!parsed.success || !isErrorCode(parsed.data.error.code)) return invalidResponse()
  const { code, message } = parsed.data.error
  return new SandwireError(code, message.slice(0, MAX_PROBLEM_CHARS))
}
