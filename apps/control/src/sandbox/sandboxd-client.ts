import type { AUTHORITIES } from '@sandwire/internal-api'
import { COMPATIBLE_FROM, PROTOCOL_VERSION, type Role, SandwireError } from '@sandwire/protocol'
import { type Deadline, withDeadline } from '../http/deadline.ts'
import { readBoundedJson } from '../http/read-bounded.ts'
import type { Provider, UpstreamRequest } from '../providers/provider.ts'
import { unreachable } from '../providers/upstream.ts'
import type { Signer } from '../signer.ts'
import { errorOfUpstream } from './upstream-errors.ts'
import { checkVersions, decodeVersions } from './versions.ts'

/** Largest JSON that sandboxd is listened to for; its lists are bounded well below. */
const MAX_JSON_BYTES = 1024 * 1024
/** Until an answer has to be there from its first byte to its last, unless whoever asks says otherwise. */
const WHOLE_ANSWER_MS = 15_000
/** One that says its version later than this hangs. */
const GREETING_MS = 10_000

/** On whose behalf sandboxd is asked. */
export interface Caller {
  readonly identity: string
  readonly authority: (typeof AUTHORITIES)[number]
  /** What it is in a session that is new to it, unless it says. */
  readonly usualRole?: Role
  /** The most it may be where a template runs, when that is more. */
  readonly templateRole?: Role
  /** What other attachments see of it. */
  readonly name?: string
  /** What its right to be here hangs on. */
  readonly login?: string
  readonly grant?: string
  /** When a connection that it opens has to show its right again. */
  readonly reauthorizeMs?: number
  /** May start any command. */
  readonly exec: boolean
  /** May start what this request says, although it may not choose. */
  readonly starts?: boolean
  /** Environment of what it starts. */
  readonly env?: Readonly<Record<string, string>>
  /** What a connection is told that its session is called. */
  readonly sessionName?: string
  readonly requestId: string
}

/**
 * The caller for starting a command that was made of a template: that one and no other, in its environment. Also for
 * who may run anything, since otherwise what is written down as a template could have been something else.
 */
export function startingTemplate(
  caller: Caller,
  { template, env = {} }: { readonly template?: string; readonly env?: Readonly<Record<string, string>> },
): Caller {
  return template === undefined ? caller : { ...caller, exec: false, starts: true, env }
}

/** Control itself, asking for its own bookkeeping. */
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
  /** A body as it is, instead of one in JSON. */
  readonly stream?: ReadableStream | string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** A request whose answer is read here, and so has to end. */
export interface SandboxdQuestion extends Omit<SandboxdRequest, 'stream' | 'signal'> {
  readonly deadline?: Deadline
}

/** Understands a good answer until the signal says that it took too long; undefined when it cannot. */
type Read<T> = (response: Response, signal: AbortSignal) => Promise<T | undefined>

export interface SandboxdDependencies {
  readonly sandbox: string
  readonly provider: Provider
  readonly signer: Signer
  readonly nowMs: () => number
}

/** Talks to the sandboxd of one sandbox, every request with a token of its own. */
export class SandboxdClient {
  readonly #deps: SandboxdDependencies

  constructor(deps: SandboxdDependencies) {
    this.#deps = deps
  }

  /** The answer as it is, for whom its body is passed on to. Nothing of the caller but what is in `request` goes along. */
  async fetch(address: string, caller: Caller, request: SandboxdRequest): Promise<Response> {
    const { sandbox, provider, signer, nowMs } = this.#deps
    const { method, path, session, body, stream, headers, signal } = request
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
      ...(signal === undefined ? {} : { signal }),
    })
  }

  /** JSON of a good answer; an error of ours otherwise. */
  ask(address: string, caller: Caller, question: SandboxdQuestion): Promise<unknown> {
    return this.read(address, caller, {
      ...question,
      read: (response, signal) => readBoundedJson(response, MAX_JSON_BYTES, signal),
    })
  }

  /** What `read` makes of a good answer; an error of ours otherwise, also when it does not end in time. */
  read<T>(
    address: string,
    caller: Caller,
    { deadline, read, ...request }: SandboxdQuestion & { readonly read: Read<T> },
  ): Promise<T> {
    const usual = { ms: WHOLE_ANSWER_MS, late: () => unreachable() }
    return withDeadline(deadline ?? usual, async (signal) => {
      const response = await this.fetch(address, caller, { ...request, signal })
      if (!response.ok) throw await errorOfUpstream(response, signal)
      const value = await read(response, signal)
      if (value === undefined) throw notUnderstood()
      return value
    })
  }

  /** Asks for its version and refuses one that cannot work; returns the protocol it speaks. */
  async greet(address: string, requestId: string): Promise<number> {
    const question = { method: 'GET', path: '/__meta/version', deadline: { ms: GREETING_MS, late } } as const
    const theirs = decodeVersions(await this.ask(address, controlItself(requestId), question))
    if (theirs === undefined) throw notUnderstood()
    checkVersions({ protocol: PROTOCOL_VERSION, compatibleFrom: COMPATIBLE_FROM }, theirs)
    return theirs.protocol
  }
}

function late(): SandwireError {
  return new SandwireError('timed_out', 'The sandbox does not answer in time')
}

export function notUnderstood(): SandwireError {
  return new SandwireError('sandbox_unreachable', 'The sandbox does not answer as it should')
}
