import type { NumberedEvent, Partial as PartialMessage } from '@sandwire/agent'
import { createStore, type Store } from '@sandwire/client'
import { ApiError } from '../api/request.ts'
import { readRun, type Run, watchRun } from '../api/runs.ts'
import { FrameQueue } from './frame-queue.ts'
import { Transcript, type TranscriptState } from './transcript.ts'

type Received = { readonly entry: NumberedEvent } | { readonly partial: PartialMessage['partial'] }

const RETRY_MS = 3_000
/** Between two reads of the run while it works: its spend is not an event. */
const READ_MS = 5_000

/** Keeps a run and its transcript up to date. */
export class RunFeed {
  readonly #id: string
  readonly #run = createStore<Run | undefined>(undefined)
  readonly #problem = createStore<string | undefined>(undefined)
  readonly #transcript = new Transcript()
  readonly #state = createStore<TranscriptState>(this.#transcript.state)
  readonly #frames = new FrameQueue<Received>({
    take: (received) => this.#take(received),
    draw: () => this.#draw(),
  })
  #timer: ReturnType<typeof setTimeout> | undefined
  #reader: ReturnType<typeof setTimeout> | undefined
  #stop: (() => void) | undefined
  #isOpen = false

  constructor(id: string) {
    this.#id = id
  }

  get run(): Store<Run | undefined> {
    return this.#run
  }

  get transcript(): Store<TranscriptState> {
    return this.#state
  }

  /** Why the run cannot be read. */
  get problem(): Store<string | undefined> {
    return this.#problem
  }

  /** Listens until the returned function is called. */
  open(): () => void {
    this.#isOpen = true
    this.#watch()
    void this.read()
    return () => {
      this.#isOpen = false
      this.#stop?.()
      clearTimeout(this.#timer)
      clearTimeout(this.#reader)
      this.#frames.stop()
    }
  }

  /** Reads the run again, now and regularly until it has ended. */
  async read(): Promise<void> {
    clearTimeout(this.#reader)
    try {
      this.#run.set(await readRun(this.#id))
      this.#problem.set(undefined)
    } catch (caught) {
      // A run that is known is shown as it was.
      if (caught instanceof ApiError && (this.#run.get() === undefined || caught.status === 404))
        this.#problem.set(caught.message)
    }
    clearTimeout(this.#reader)
    if (this.#isOpen && this.#run.get()?.state !== 'ended')
      this.#reader = setTimeout(() => void this.read(), READ_MS)
  }

  #watch(): void {
    if (!this.#isOpen || this.#state.get().isComplete) return
    this.#stop = watchRun(this.#id, this.#state.get().lastSeq, {
      onEvent: (entry) => this.#frames.push({ entry }),
      onPartial: (partial) => this.#frames.push({ partial }),
      onEnd: () => {
        this.#stop?.()
        this.#timer = setTimeout(() => this.#watch(), RETRY_MS)
      },
    })
  }

  #take(received: Received): void {
    if ('entry' in received) this.#transcript.add(received.entry)
    else this.#transcript.addPartial(received.partial)
  }

  #draw(): void {
    const before = this.#state.get().agentState
    const state = this.#transcript.state
    this.#state.set(state)
    if (state.agentState !== before || state.isComplete) void this.read()
    if (state.isComplete) this.#stop?.()
  }
}
