import { SandwireError } from '@sandwire/protocol'
import { OpenTable } from '../workspace/beneath/system-calls.ts'
import { closeAll } from '../workspace/thread/worker-client.ts'
import type { FromThread, ThreadSetUp, ToThread, VersionRequest, VersionResults } from './messages.ts'

export interface VersionThreadOptions {
  readonly createWorker: () => Worker
  readonly setUp: Omit<ThreadSetUp, 'table'>
}

interface Waiting {
  readonly resolve: (result: VersionResults[keyof VersionResults]) => void
  readonly reject: (error: SandwireError) => void
}

/** Sends requests to the thread that saves and restores. It is started by the first one, and again when it has ended. */
export class VersionThread {
  readonly #options: VersionThreadOptions
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | undefined
  #minted = 0

  constructor(options: VersionThreadOptions) {
    this.#options = options
  }

  request<V extends VersionRequest['verb']>(
    request: Extract<VersionRequest, { verb: V }>,
    /** Buffers of the request that the thread takes over, instead of copies. */
    moved: ArrayBuffer[] = [],
  ): Promise<VersionResults[V]> {
    const { promise, resolve, reject } = Promise.withResolvers<VersionResults[keyof VersionResults]>()
    this.#minted += 1
    this.#waiting.set(this.#minted, { resolve, reject })
    this.#worker ??= this.#start()
    this.#post({ kind: 'request', id: this.#minted, request }, moved)
    // The thread returns the result type of each verb; messages between threads are untyped.
    return promise as Promise<VersionResults[V]>
  }

  stop(): void {
    this.#ended('it was stopped')
  }

  #post(message: ToThread, moved: ArrayBuffer[]): void {
    this.#worker?.postMessage(message, moved)
  }

  #start(): Worker {
    const worker = this.#options.createWorker()
    const table = new OpenTable()
    worker.addEventListener('message', (event: MessageEvent<FromThread>) => {
      if (this.#worker === worker) this.#receive(event.data)
    })
    const ended = (): void => {
      if (this.#worker === worker) this.#ended('its thread ended')
    }
    worker.addEventListener('error', ended)
    worker.addEventListener('close', () => {
      ended()
      closeAll(table)
    })
    const message: ToThread = { kind: 'setUp', setUp: { ...this.#options.setUp, table: table.shared } }
    worker.postMessage(message)
    return worker
  }

  #receive(message: FromThread): void {
    if (message.kind === 'unfit') return this.#ended(message.message)
    const waiting = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    if (message.kind === 'done') waiting?.resolve(message.result)
    else waiting?.reject(new SandwireError(message.code, message.message))
  }

  #ended(why: string): void {
    const worker = this.#worker
    if (worker === undefined) return
    this.#worker = undefined
    worker.terminate()
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { reject } of waiting) reject(new SandwireError('internal', `Cannot save files: ${why}`))
  }
}
