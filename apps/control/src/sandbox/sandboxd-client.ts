import type { AgentTui, AUTHORITIES } from '@sandwire/internal-api'
import {
  COMPATIBLE_FROM,
  type ErrorCode,
  isErrorCode,
  PROTOCOL_VERSION,
  type Role,
  SandwireError,
} from '@sandwire/protocol'
import { z } from 'zod'
import { type Deadline, withDeadline } from '../http/deadline.ts'
import { readBoundedJson } from '../http/read-bounded.ts'
import type { Provider, UpstreamRequest } from '../providers/provider.ts'
import { unreachable } from '../providers/upstream.ts'
import type { Signer } from '../signer.ts'

/** Largest JSON response that is read; sandboxd's lists are well below. */
const MAX_JSON_BYTES = 1024 * 1024
/** Until a response must end, unless the request has a deadline of its own. */
const WHOLE_RESPONSE_MS = 15_000
/** Until sandboxd must have reported its version. */
const VERSION_MS = 10_000

/** On whose behalf a request to sandboxd is made. */
export interface Caller {
  readonly identity: string
  readonly authority: (typeof AUTHORITIES)[number]
  /** Role in a session that it joins for the first time, unless it requests one. */
  readonly usualRole?: Role
  /** Highest role where a template runs, when that is higher. */
  readonly templateRole?: Role
  /** Name that other attachments see. */
  readonly name?: string
  /** What authorizes it, together with `grant`. */
  readonly login?: string
  readonly grant?: string
  /** When a connection that it opens must authenticate again. */
  readonly reauthorizeMs?: number
  /** May start any command. */
  readonly exec: boolean
  /** May start the command of this request, though not any command. */
  readonly starts?: boolean
  /** Environment of the process that it starts. */
  readonly env?: Readonly<Record<string, string>>
  /** A coding agent whose own interface runs in place of the command. */
  readonly agentTui?: AgentTui
  /** Session name reported to the client. */
  readonly sessionName?: string
  readonly requestId: string
}

/**
 * The caller for a command that was built from a template: it may start that command only, in the template's environment. This
 * includes callers that may run anything, so that the audit's template is what really ran.
 */
export function startingTemplate(
  caller: Caller,
  { template, env = {} }: { readonly template?: string; readonly env?: Readonly<Record<string, string>> },
): Caller {
  return template === undefined ? caller : { ...caller, exec: false, starts: true, env }
}

/** Control as the caller, for its own bookkeeping. */
export function controlItself(requestId: string): Caller {
  return { identity: 'control', authority: 'control', exec: false, requestId }
}

export interface SandboxdRequest {
  readonly method: UpstreamRequest['method']
  /** Path and canonical query. */
  readonly path: string
  /** Id for the session that this request starts. */
  readonly session?: string
  readonly body?: unknown
  /** A raw body instead of JSON. */
  readonly stream?: ReadableStream | string
  readonly bytes?: Uint8Array<ArrayBuffer>
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  readonly isPoll?: boolean
}

/** A request whose response is read here, and so must end in time. */
export interface BoundedRequest extends Omit<SandboxdRequest, 'stream' | 'signal'> {
  readonly deadline?: Deadline
}

/** Reads a successful response until the signal is aborted; undefined when it is malformed. */
type Read<T> = (response: Response, signal: AbortSignal) => Promise<T | undefined>

export interface SandboxdDependencies {
  readonly sandbox: string
  readonly provider: Pick<Provider, 'fetch'>
  readonly signer: Signer
  readonly nowMs: () => number
}

/** Sends requests to the sandboxd of one sandbox, each with its own token. */
export class SandboxdClient {
  readonly #deps: SandboxdDependencies

  constructor(deps: SandboxdDependencies) {
    this.#deps = deps
  }

  /** Returns the raw response. Nothing of the client's request is sent but what is in `request`. */
  async fetch(address: string, caller: Caller, request: SandboxdRequest): Promise<Response> {
    const { sandbox, provider, signer, nowMs } = this.#deps
    const { method, path, session, body, stream, bytes, headers, signal, isPoll } = request
    const token = await signer.sign(
      { method, path, sandbox, ...caller, ...(session === undefined ? {} : { session }) },
      nowMs(),
    )
    return provider.fetch(address, {
      method,
      path,
      headers: {
        ...headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        authorization: `Bearer ${token}`,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(stream === undefined ? {} : { body: stream }),
      ...(bytes === undefined ? {} : { body: bytes }),
      ...(signal === undefined ? {} : { signal }),
      ...(isPoll === undefined ? {} : { isPoll }),
    })
  }

  /** Returns the JSON of a successful response; throws otherwise. */
  request(address: string, caller: Caller, request: BoundedRequest): Promise<unknown> {
    return this.read(address, caller, {
      ...request,
      read: (response, signal) => readBoundedJson(response, MAX_JSON_BYTES, signal),
    })
  }

  /** Returns what `read` makes of a successful response; throws otherwise, also when it does not end in time. */
  read<T>(
    address: string,
    caller: Caller,
    { deadline, read, ...request }: BoundedRequest & { readonly read: Read<T> },
  ): Promise<T> {
    const fallback = { ms: WHOLE_RESPONSE_MS, late: () => unreachable() }
    return withDeadline(deadline ?? fallback, async (signal) => {
      const response = await this.fetch(address, caller, { ...request, signal })
      if (!response.ok) throw await readSandboxdError(response, signal)
      const value = await read(response, signal)
      if (value === undefined) throw invalidResponse()
      return value
    })
  }

  /** Reads the protocol version of sandboxd; throws `version_unsupported` when it is not compatible. */
  async readVersion(address: string, requestId: string): Promise<number> {
    const request = { method: 'GET', path: '/__meta/version', deadline: { ms: VERSION_MS, late } } as const
    const theirs = decodeVersions(await this.request(address, controlItself(requestId), request))
    if (theirs === undefined) throw invalidResponse()
    checkVersions({ protocol: PROTOCOL_VERSION, compatibleFrom: COMPATIBLE_FROM }, theirs)
    return theirs.protocol
  }
}

function late(): SandwireError {
  return new SandwireError('timed_out', 'The sandbox does not respond in time')
}

export function invalidResponse(): SandwireError {
  return new SandwireError('sandbox_unreachable', 'The sandbox sent an invalid response')
}

const MAX_ERROR_BYTES = 16 * 1024
const errorBody = z.object({ error: z.object({ code: z.string() }) })

/** Codes of sandboxd that are about the caller's request, with our messages. All others mean that the sandbox is broken. */
const PASSED_ON: Partial<Record<ErrorCode, string>> = {
  bad_request: 'A parameter is not valid',
  path_refused: 'Cannot start the process: no such folder in the workspace',
  needs_v1: 'Cannot use a parameter without the sandwire.v1 subprotocol',
  forbidden: 'Not allowed in this sandbox',
  session_not_found: 'No session has this id',
  agent_in_use:
    'Cannot open the agent in a terminal: it works for a run or a conversation in this sandbox, or another terminal has this conversation open. Wait until it has finished, or stop it',
  session_gone: 'The session has ended',
  conflict: 'The create id was used with other parameters',
  too_many_sessions: 'Cannot start more sessions in this sandbox',
  too_many_attachments: 'Cannot attach more clients to this session',
  rate_limited: 'Too many requests',
  frame_too_large: 'The request is too large',
  command_not_found: 'Cannot start the process: no such command',
  command_not_executable: 'Cannot start the process: the command cannot be executed',
  spawn_failed: 'Cannot start the process',
  shutting_down: 'The sandbox is stopping',
  disk_full: 'No space is left on the disk of the sandbox',
  version_damaged: 'Cannot restore the version: bytes of it are damaged. Restore an older one',
}

/** Header of a 101 response with the code of a refusal that follows in a frame; control does not read frames. */
export const REFUSAL_HEADER = 'sandwire-refusal'

/** The error for a code of sandboxd. */
export function errorOfCode(code: string): SandwireError {
  const message = isErrorCode(code) ? PASSED_ON[code] : undefined
  return !isErrorCode(code) || message === undefined ? invalidResponse() : new SandwireError(code, message)
}

/** The error for an error response of sandboxd. Its message is not passed on. */
export async function readSandboxdError(response: Response, signal: AbortSignal): Promise<SandwireError> {
  if (response.status < 400 || response.status > 599) {
    await response.body?.cancel()
    return invalidResponse()
  }
  const parsed = errorBody.safeParse(await readBoundedJson(response, MAX_ERROR_BYTES, signal))
  return parsed.success ? errorOfCode(parsed.data.error.code) : invalidResponse()
}

/** Protocol versions that a side supports: `protocol`, and everything down to `compatibleFrom`. */
export interface Versions {
  readonly protocol: number
  readonly compatibleFrom: number
}

const versionBody = z.object({ protocol: z.int().min(0), compatible_from: z.int().min(0) })

/** Parses a `/__meta/version` response. */
export function decodeVersions(value: unknown): Versions | undefined {
  const result = versionBody.safeParse(value)
  if (!result.success) return undefined
  return { protocol: result.data.protocol, compatibleFrom: result.data.compatible_from }
}

/** Throws `version_unsupported`, naming the older side, unless each side supports the other's version. */
export function checkVersions(ours: Versions, theirs: Versions): void {
  if (theirs.protocol < ours.compatibleFrom)
    throw new SandwireError(
      'version_unsupported',
      `Cannot use the sandbox: its sandboxd is old (protocol ${theirs.protocol}, needed ${ours.compatibleFrom}); stop and start the sandbox`,
    )
  if (theirs.compatibleFrom > ours.protocol)
    throw new SandwireError(
      'version_unsupported',
      `Cannot use the sandbox: this server is old (protocol ${ours.protocol}, the sandbox needs ${theirs.compatibleFrom}); update the server`,
    )
}
