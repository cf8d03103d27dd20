import { z } from 'zod'
import { CALL_HEADER, type SandboxCall } from './call.ts'
import { callFields, closeSocket } from './pass-through.ts'
import { controlItself } from './sandboxd-client.ts'
import type { SandboxSessions } from './sessions.ts'
import type { SandboxStore } from './store.ts'
import { noSuchSandbox } from './not-found.ts'

/** URL at which a sandbox's object accepts requests of a run's object for sandboxd. */
export const AGENTS_URL = 'http://sandbox/agents'

/** A request of a run's object. Its body is the body of the carrying request. */
export interface AgentCall {
  /** Empty: none in particular. */
  readonly run: string
  readonly requestId: string
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** Path and query at sandboxd. */
  readonly path: string
  /** A stopped sandbox is started for this request. */
  readonly mayStart: boolean
  readonly headers: Readonly<Record<string, string>>
  /** Until the response must begin; absent: as for every request. */
  readonly waitMs?: number
  /** The account that reads the events; absent: control itself. */
  readonly viewer?: SandboxCall
}

const callSchema = z.object({
  run: z.string(),
  requestId: z.string(),
  method: z.enum(['GET', 'PUT', 'POST', 'DELETE']),
  path: z.string().regex(/^\/agents(\/|$)/),
  mayStart: z.boolean(),
  headers: z.record(z.string(), z.string()),
  waitMs: z.number().exactOptional(),
  viewer: z.object(callFields).exactOptional(),
})

export function parseAgentCall(headers: Headers): AgentCall {
  return callSchema.parse(JSON.parse(headers.get(CALL_HEADER) ?? ''))
}

export interface SandboxAgentsDependencies {
  readonly sessions: Pick<SandboxSessions, 'reach'>
  readonly store: SandboxStore
  readonly nowMs: () => number
  /** Gives up the versions that a run kept. */
  readonly releaseVersions: (run: string) => Promise<void>
}

/** Passes requests of runs to sandboxd, and stores what the sandbox knows of runs. */
export class SandboxAgents {
  readonly #deps: SandboxAgentsDependencies

  constructor(deps: SandboxAgentsDependencies) {
    this.#deps = deps
  }

  async setActive(run: string, state: 'working' | 'resting' | 'gone'): Promise<void> {
    const { store, releaseVersions } = this.#deps
    if (store.read() === undefined) return
    if (state === 'working') store.setPin(run, true)
    else store.removePin(run)
    if (state === 'gone') await releaseVersions(run)
  }

  claudeSession(account: string, alias: string, run?: string): string | null {
    const { store } = this.#deps
    if (store.read() === undefined) return null
    // Names of terminals have no colon.
    const name = `claude:${alias}`
    if (run !== undefined) store.aliases.put(account, name, run)
    return store.aliases.find(account, name) ?? null
  }

  /** Returns the status and body of sandboxd's response, or its 101, and no header but the content type. */
  async handle(call: AgentCall, body: string | undefined): Promise<Response> {
    const { sessions, store, nowMs } = this.#deps
    const { run, requestId, method, path, mayStart, headers, waitMs, viewer } = call
    const record = store.read()
    if (record === undefined) throw noSuchSandbox()
    const owner = { identity: record.owner, name: '', scopes: [], address: '', requestId }
    const options =
      viewer === undefined
        ? ({ need: 'own', mayStart, isIdempotent: true } as const)
        : ({ need: 'watch', session: run, mayStart: false, isIdempotent: true } as const)
    return sessions.reach(viewer ?? owner, options, async ({ address }, sandboxd, caller) => {
      // A run is activity even if its agent only thinks.
      if (viewer === undefined) store.touch(nowMs())
      const response = await sandboxd.fetch(
        address,
        viewer === undefined ? controlItself(requestId) : caller,
        {
          method,
          path,
          headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
          ...(body === undefined ? {} : { stream: body }),
          ...(waitMs === undefined ? {} : { signal: AbortSignal.timeout(waitMs) }),
        },
      )
      const { webSocket } = response
      if (webSocket !== null) {
        if (response.status === 101) return new Response(null, { status: 101, webSocket })
        closeSocket(response)
      }
      const type = response.headers.get('content-type') ?? 'application/octet-stream'
      return new Response(response.body, { status: response.status, headers: { 'content-type': type } })
    })
  }
}
