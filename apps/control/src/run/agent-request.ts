import type { AgentStart } from '@sandwire/agent'
import { isErrorCode, SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { withDeadline } from '../http/deadline.ts'
import { readBoundedJson } from '../http/read-bounded.ts'
import { CODE_HEADER } from '../http/respond.ts'
import { readObjectError } from '../outcome.ts'
import { unreachable } from '../providers/upstream.ts'
import { AGENTS_URL, type AgentCall } from '../sandbox/agents.ts'
import { CALL_HEADER, type SandboxCall } from '../sandbox/call.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { invalidResponse } from '../sandbox/sandboxd-client.ts'
import type { ProgramRequests } from './start-program.ts'

const REQUEST_MS = 30_000
/** A range of events is about 1 MiB, and one event may exceed it. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024
/** Longest message of an error. */
const MAX_PROBLEM_CHARS = 500

const errorBody = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

/** An agent's program in a sandbox. */
export interface AgentTarget {
  readonly sandbox: string
  /** Names the program at sandboxd; null: all of them. */
  readonly run: string | null
}

export interface AgentRequest {
  readonly method: AgentCall['method']
  /** Follows the run's id. */
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The account that reads events; absent: control itself. */
  readonly viewer?: SandboxCall
  /** Starts a stopped sandbox; by default for control itself. */
  readonly mayStart?: boolean
  /** Until the response must begin. */
  readonly waitMs?: number
}

/** Sends a request for an agent to its sandbox's object. */
export function sendToAgent(
  lookup: Pick<SandboxLookup, 'sandbox'>,
  { sandbox, run }: AgentTarget,
  { method, path, body, headers = {}, viewer, waitMs, mayStart = viewer === undefined }: AgentRequest,
): Promise<Response> {
  const call: AgentCall = {
    run: run ?? '',
    requestId: viewer?.requestId ?? crypto.randomUUID(),
    method,
    path: `/agents${run === null ? '' : `/${run}`}${path}`,
    mayStart,
    headers,
    ...(waitMs === undefined ? {} : { waitMs }),
    ...(viewer === undefined ? {} : { viewer }),
  }
  return lookup.sandbox(sandbox).fetch(AGENTS_URL, {
    method: method === 'GET' ? 'GET' : 'POST',
    headers: {
      [CALL_HEADER]: JSON.stringify(call),
      ...(headers['upgrade'] === undefined ? {} : { upgrade: headers['upgrade'] }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

/** The JSON of sandboxd's response; undefined for an empty one. Throws its error. */
export function requestAgent(
  lookup: Pick<SandboxLookup, 'sandbox'>,
  target: AgentTarget,
  request: AgentRequest,
): Promise<unknown> {
  return withDeadline({ ms: REQUEST_MS, late: () => unreachable() }, async (signal) => {
    const response = await sendToAgent(lookup, target, request)
    if (!response.ok) throw await readAgentError(response)
    if (response.status === 204) return undefined
    const value = await readBoundedJson(response, MAX_RESPONSE_BYTES, signal)
    if (value === undefined) throw invalidResponse()
    return value
  })
}

/** Requests that start an agent's program. */
export function programRequests(
  lookup: Pick<SandboxLookup, 'sandbox'>,
  target: AgentTarget,
  start: AgentStart,
): ProgramRequests {
  const { sandbox } = target
  const body = { reason: 'aborted', message: 'Another agent is to start in the sandbox' }
  return {
    start: () => requestAgent(lookup, target, { method: 'PUT', path: '', body: start }),
    list: () => requestAgent(lookup, { sandbox, run: null }, { method: 'GET', path: '' }),
    stop: (run) => requestAgent(lookup, { sandbox, run }, { method: 'POST', path: '/stop', body }),
  }
}

/** The error of a response: of the sandbox's object, or of sandboxd. */
export async function readAgentError(response: Response): Promise<SandwireError> {
  if (response.headers.has(CODE_HEADER)) return readObjectError(response)
  const parsed = errorBody.safeParse(await readBoundedJson(response, 16 * 1024))
  if (!parsed.success || !isErrorCode(parsed.data.error.code)) return invalidResponse()
  const { code, message } = parsed.data.error
  return new SandwireError(code, message.slice(0, MAX_PROBLEM_CHARS))
}
