import { closeSync } from 'node:fs'
import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import { OpenTable } from '../beneath/system-calls.ts'
import type { FromThread, ResultOf, ThreadTypes, ToThread } from './thread-messages.ts'

/** Pending requests; more are refused. */
const MAX_WAITING = 4_096

export interface WorkerClientOptions<T extends ThreadTypes> {
  readonly createWorker: () => Worker
  readonly setUp: Omit<T['setUp'], 'table'>
  /** What fails when the thread does, as in "Cannot access files". */
  readonly task: string
}

interface RequestOptions {
  readonly signal?: AbortSignal | undefined
  /** Buffers of the request that the thread takes over, instead of copies. */
  readonly moved?: ArrayBuffer[]
}

interface Waiting<T extends ThreadTypes> {
  readonly resolve: (result: ResultOf<T>) => void
  readonly reject: (error: SandwireError) => void
  readonly part?: (part: T['part']) => void
}

interface Thread {
  readonly worker: Worker
  readonly table: OpenTable
}

/** Sends requests to a worker thread, which the first one starts. A thread that has ended is restarted by the next request. */
export class WorkerClient<T extends ThreadTypes> {
  readonly #options: WorkerClientOptions<T>
  readonly #waiting = new Map<number, Waiting<T>>()
  #thread: Thread | undefined
  #minted = 0

  constructor(options: WorkerClientOptions<T>) {
    this.#options = options
  }

  request<V extends keyof T['results']>(
    request: Extract<T['request'], { verb: V }>,
    options: RequestOptions = {},
  ): Promise<T['results'][V]> {
    const { promise, resolve, reject } = Promise.withResolvers<ResultOf<T>>()
    this.#send(request, { resolve, reject }, options)
    // The thread returns the result type of each verb; messages between threads are untyped.
    return promise as Promise<T['results'][V]>
  }

  /** A request that is answered in parts, followed by the result. */
  async *parts<V extends keyof T['results']>(
    request: Extract<T['request'], { verb: V }>,
    signal?: AbortSignal,
  ): AsyncGenerator<T['part'], T['results'][V], void> {
    const queue = new PartQueue<T['part'], ResultOf<T>>()
    const end = new AbortController()
    const either = signal === undefined ? end.signal : AbortSignal.any([end.signal, signal])
    const id = this.#send(
      request,
      {
        resolve: (result) => queue.finish(result),
        reject: (error) => queue.fail(error),
        part: (part) => queue.add(part),
      },
      { signal: either },
    )
    try {
      for await (const part of queue) {
        yield part
        this.#post({ kind: 'taken', id })
      }
      return queue.result as T['results'][V]
    } finally {
      end.abort()
    }
  }

  /** Transfers ownership of a descriptor to the caller, whatever happens to the thread. */
  adopt(fd: number): number {
    this.#thread?.table.remove(fd)
    return fd
  }

  stop(): void {
    this.#ended('it was stopped')
  }

  #send(request: T['request'], waiting: Waiting<T>, { signal, moved = [] }: RequestOptions): number {
    this.#minted += 1
    const id = this.#minted
    const isFinishing = request.verb === 'commit' || request.verb === 'discard'
    if (signal?.aborted === true) {
      waiting.reject(canceled())
    } else if (this.#waiting.size >= MAX_WAITING && !isFinishing) {
      waiting.reject(this.#failure('rate_limited', 'too many requests are pending'))
    } else {
      this.#waiting.set(id, waiting)
      this.#thread ??= this.#start()
      this.#post({ kind: 'request', id, request }, moved)
      signal?.addEventListener('abort', () => this.#cancel(id), { once: true })
    }
    return id
  }

  #cancel(id: number): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    this.#post({ kind: 'cancel', id })
    waiting.reject(canceled())
  }

  #post(message: ToThread<T>, moved: ArrayBuffer[] = []): void {
    this.#thread?.worker.postMessage(message, moved)
  }

  #start(): Thread {
    const worker = this.#options.createWorker()
    const table = new OpenTable()
    const thread = { worker, table }
    worker.addEventListener('message', (event: MessageEvent<FromThread<T>>) => {
      if (this.#thread === thread) this.#receive(event.data)
    })
    const ended = (): void => {
      if (this.#thread === thread) this.#ended('its thread ended')
    }
    worker.addEventListener('error', ended)
    worker.addEventListener('close', () => {
      ended()
      // Only now: a descriptor number must not be reused while the thread still uses it.
      closeAll(table)
    })
    const setUp: T['setUp'] = { ...this.#options.setUp, table: table.shared }
    const message: ToThread<T> = { kind: 'setUp', setUp }
    worker.postMessage(message)
    return thread
  }

  #receive(message: FromThread<T>): void {
    if (message.kind === 'unfit') return this.#ended(message.message)
    const waiting = this.#waiting.get(message.id)
    if (message.kind === 'part') return waiting?.part?.(message.part)
    this.#waiting.delete(message.id)
    if (message.kind === 'done') waiting?.resolve(message.result)
    else waiting?.reject(new SandwireError(message.code, message.message))
  }

  /** Rejects all pending requests. */
  #ended(why: string): void {
    const thread = this.#thread
    if (thread === undefined) return
    this.#thread = undefined
    thread.worker.terminate()
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { reject } of waiting) reject(this.#failure('internal', why))
  }

  #failure(code: ErrorCode, why: string): SandwireError {
    return new SandwireError(code, `Cannot ${this.#options.task}: ${why}`)
  }
}

function canceled(): SandwireError {
  return new SandwireError('internal', 'Cannot continue: the request was canceled')
}

/** Closes the descriptors that an ended thread left open. */
function closeAll(table: OpenTable): void {
  for (const fd of table.take()) {
    try {
      closeSync(fd)
    } catch {
      // The thread closed it but ended before it could remove it from the table.
    }
  }
}

/** Queue of parts for one reader, followed by a result. The sender bounds its length. */
class PartQueue<Part, Result> {
  readonly #parts: Part[] = []
  #end: { readonly result: Result } | { readonly error: Error } | undefined
  #wake: (() => void) | undefined

  add(part: Part): void {
    this.#parts.push(part)
    this.#wake?.()
  }

  finish(result: Result): void {
    this.#end ??= { result }
    this.#wake?.()
  }

  fail(error: Error): void {
    this.#end ??= { error }
    this.#wake?.()
  }

  /** Undefined before the last part. */
  get result(): Result | undefined {
    return this.#end !== undefined && 'result' in this.#end ? this.#end.result : undefined
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Part, void, void> {
    for (;;) {
      const part = this.#parts.shift()
      if (part !== undefined) yield part
      else if (this.#end === undefined) await new Promise<void>((resolve) => (this.#wake = resolve))
      else if ('error' in this.#end) throw this.#end.error
      else return
    }
  }
}
