import type { AUTHORITIES } from '@sandwire/internal'
import { COMPATIBLE_FROM, PROTOCOL_VERSION, type Role, SandwireError } from '@sandwire/protocol'
import { readBoundedJson } from '../http/read-bounded.ts'
import { within } from '../http/within.ts'
import type { Provider, UpstreamRequest } from '../providers/provider.ts'
import type { Signer } from '../signer.ts'
import { errorOfUpstream } from './upstream-errors.ts'
import { checkVersions, decodeVersions } from './versions.ts'

/** Largest JSON that sandboxd is listened to for; its lists are bounded well below. */
const MAX_JSON_BYTES = 1024 * 1024
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
  readonly reauthoriseMs?: number
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

  /** The answer as it is. Nothing of the caller but what is in `request` goes along. */
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
  async ask(address: string, caller: Caller, request: SandboxdRequest): Promise<unknown> {
    const response = await this.fetch(address, caller, request)
    if (!response.ok) throw await errorOfUpstream(response)
    const value = await readBoundedJson(response, MAX_JSON_BYTES)
    if (value === undefined) throw notUnderstood()
    return value
  }

  /** Asks for its version and refuses one that cannot work; returns the protocol it speaks. */
  async greet(address: string, requestId: string): Promise<number> {
    const path = '/__meta/version'
    const asked = this.ask(address, controlItself(requestId), { method: 'GET', path })
    const theirs = decodeVersions(await within(asked, GREETING_MS, late))
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
