import { SandwireError } from '@sandwire/protocol'
import { answerHeaders, answerLength, typeOf } from '../gateway/headers.ts'
import { passBytes } from '../gateway/pass-bytes.ts'
import type { GatewayRoute } from '../gateway/route.ts'
import { findRoute } from '../gateway/table.ts'
import { CODE_HEADER } from '../http/respond.ts'
import type { Breakers } from '../providers/breakers.ts'
import { retryIdempotent } from '../providers/retry.ts'
import type { SandboxLife } from './life.ts'
import type { Caller, SandboxdClient } from './sandboxd-client.ts'
import type { SandboxSessions } from './sessions.ts'
import type { SandboxStore } from './store.ts'
import type { Transfer, Transfers } from './transfers.ts'
import type { WorkspaceCall } from './workspace-call.ts'
import { broken, readTold, unavailable } from './workspace-errors.ts'

/** Says to the worker that an error's body is whole already. */
export const WHOLE_HEADER = 'x-sandwire-whole'

/** Answers that are passed on. A redirect is none: nobody is led anywhere by a sandbox. */
const GOOD: ReadonlySet<number> = new Set([200, 201, 202, 204, 206, 304])

/** Until sandboxd has to have said what went wrong, which is read here and not passed on. */
const TOLD_MS = 10_000

export interface WorkspaceDependencies {
  readonly life: SandboxLife
  readonly sessions: SandboxSessions
  readonly store: SandboxStore
  readonly transfers: Transfers
  readonly breakers: Breakers
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly random: () => number
  /** Keeps the object alive until this is over. */
  readonly hold: (work: Promise<unknown>) => void
}

/** The request that brought a call. */
export interface Asking {
  readonly body: ReadableStream<Uint8Array> | null
  /** Says that nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

/** A request that was answered. */
interface Answered {
  readonly response: Response
  readonly transfer: Transfer
}

function tooLarge(maxBytes: number): SandwireError {
  return new SandwireError(
    'file_too_large',
    `Cannot read the file at once: it has more than ${maxBytes} bytes; ask for a range`,
  )
}

function isUnreachable(error: unknown): boolean {
  return error instanceof SandwireError && error.code === 'sandbox_unreachable'
}

function pathOf({ upstream }: GatewayRoute, { id, query }: WorkspaceCall): string {
  const path = upstream.replace(':id', id ?? '')
  return query === '' ? path : `${path}?${query}`
}

/**
 * Requests about files, on their way through a sandbox's object. Bodies stream both ways and are never held here; the sandbox
 * is started for one only where it is a folder of this machine.
 */
export class SandboxWorkspace {
  readonly #deps: WorkspaceDependencies

  constructor(deps: WorkspaceDependencies) {
    this.#deps = deps
  }

  /** Passes a request on, and its answer back; throws an error of ours when there is none that may be passed. */
  async pass(call: WorkspaceCall, asking: Asking): Promise<Response> {
    const { life, store, breakers, nowMs } = this.#deps
    const route = findRoute(call.route)
    if (route === undefined) throw new Error('There is no such way into a workspace')
    const { record } = life.allow(call, 'work')
    if (!breakers.admit(record.id, nowMs())) throw unavailable(1_000)
    if (route.does === 'change') store.touch(nowMs())
    const answered = await this.#counted(record.id, () => this.#ask(call, route, asking))
    try {
      return await this.#answer(call, route, answered)
    } catch (error) {
      answered.transfer.end()
      throw error
    }
  }

  /** Counts against the sandbox that it did not answer, and for it that it did, whatever it said. */
  async #counted(sandbox: string, ask: () => Promise<Answered>): Promise<Answered> {
    const { breakers, nowMs } = this.#deps
    try {
      const answered = await ask()
      if (answered.response.status === 503) breakers.failed(sandbox, nowMs())
      else breakers.succeeded(sandbox)
      return answered
    } catch (caught) {
      const isAway = isUnreachable(caught)
      const isLate = caught instanceof SandwireError && caught.code === 'timed_out'
      if (isAway || isLate) breakers.failed(sandbox, nowMs())
      throw isAway ? unavailable() : caught
    }
  }

  #ask(call: WorkspaceCall, route: GatewayRoute, asking: Asking): Promise<Answered> {
    const { sessions, sleep, random } = this.#deps
    const isIdempotent = route.isIdempotent && asking.body === null
    let isSpent = false
    const entry = { need: 'work', mayStart: call.mayStart, isIdempotent } as const
    return sessions.reach(call, entry, ({ address }, sandboxd, caller) => {
      const send = (): Promise<Answered> => {
        // Whatever of it was sent is not there any more to be sent again.
        if (isSpent) throw unavailable()
        isSpent = asking.body !== null
        return this.#send(call, route, { address, sandboxd, caller, asking })
      }
      return isIdempotent ? retryIdempotent(send, { isWorthRetrying: isUnreachable, sleep, random }) : send()
    })
  }

  /** One attempt. */
  async #send(
    call: WorkspaceCall,
    route: GatewayRoute,
    way: {
      readonly address: string
      readonly sandboxd: SandboxdClient
      readonly caller: Caller
      readonly asking: Asking
    },
  ): Promise<Answered> {
    const { address, sandboxd, caller, asking } = way
    // In the turn in which the caller was found to be allowed: whoever withdraws that finds it.
    const transfer = this.#deps.transfers.open(caller)
    try {
      transfer.follow(asking.signal)
      const stream = this.#upload(route, transfer, { body: asking.body, length: call.length })
      const response = await sandboxd.fetch(address, caller, {
        method: call.isHead ? 'HEAD' : route.method,
        path: pathOf(route, call),
        headers: call.headers,
        signal: transfer.signal,
        ...(stream === undefined ? {} : { stream }),
      })
      transfer.answered(GOOD.has(response.status) ? route.longestMs : TOLD_MS)
      return { response, transfer }
    } catch (error) {
      transfer.end()
      throw error
    }
  }

  /** The body on its way. The time until there is an answer begins when all of it is sent, or at once. */
  #upload(
    { answerMs, longestMs, body: { maxBytes } }: GatewayRoute,
    transfer: Transfer,
    {
      body,
      length,
    }: { readonly body: ReadableStream<Uint8Array> | null; readonly length?: number | undefined },
  ): ReadableStream<Uint8Array> | undefined {
    transfer.awaitAnswer(body === null ? answerMs : longestMs)
    if (body === null) return undefined
    const passing = passBytes(body, {
      length,
      maxBytes,
      signal: transfer.signal,
      onTooMuch: (reason) => transfer.refuse(reason),
      patience: {
        ms: answerMs,
        onLate: () => transfer.late(),
      },
    })
    // When one of the ends is gone, the request itself says which.
    const sent = passing.done.catch(() => undefined).then(() => transfer.awaitAnswer(answerMs))
    this.#deps.hold(sent)
    return passing.body
  }

  async #answer(
    call: WorkspaceCall,
    { answer, api }: GatewayRoute,
    { response, transfer }: Answered,
  ): Promise<Response> {
    const { status, headers } = response
    const body: ReadableStream<Uint8Array> | null = response.body
    if (!GOOD.has(status)) {
      const told = await readTold(response, { api, isHead: call.isHead, signal: transfer.signal })
      if (told.kind === 'error') throw told.error
      transfer.end()
      const code = { [CODE_HEADER]: told.code, [WHOLE_HEADER]: '1' }
      return Response.json(told.body(call.requestId), { status, headers: code })
    }
    const length = answerLength(status, headers)
    const hasBody = body !== null && status !== 204 && status !== 304
    const isWhole = length === undefined ? answer.hasEnd : length >= 0 && length <= answer.maxBytes
    const isPlain = typeOf(headers) === answer.type && !headers.has('content-encoding')
    if (hasBody && !(isWhole && isPlain)) {
      await body?.cancel()
      const isLarge = !answer.hasEnd && isPlain && length !== undefined && length > answer.maxBytes
      throw isLarge ? tooLarge(answer.maxBytes) : broken()
    }
    const passed = new Headers(answerHeaders(headers))
    if (!hasBody) {
      transfer.end()
      if (call.isHead && length !== undefined) {
        passed.set('content-type', answer.type)
        passed.set('content-length', String(length))
      }
      return new Response(null, { status, headers: passed })
    }
    passed.set('content-type', answer.type)
    const { maxBytes } = answer
    const passing = passBytes(body, {
      length,
      maxBytes,
      signal: transfer.signal,
      onTooMuch: (reason) => transfer.abort(reason),
    })
    // Its reader may go away, or sandboxd may: either way there is nobody left to tell.
    this.#deps.hold(passing.done.catch(() => undefined).then(() => transfer.end()))
    return new Response(passing.body, { status, headers: passed })
  }
}
