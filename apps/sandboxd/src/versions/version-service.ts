import { KeyedSerializer } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import type { SegmentId } from '@sandwire/version-format'
import type { WorkerClient } from '../workspace/thread/worker-client.ts'
import type { BeginSave, NextStep, SaveSummary, VersionEnds, VersionThread } from './messages.ts'

/** Longest time that processes are stopped for a periodic save; the version is marked as fuzzy when it was not enough. */
const MAX_PAUSE_MS = 500
/** Processes go on when control does not fetch the next segment for this long: it may have ended. */
const MAX_SILENCE_MS = 15_000

/** Control saves the files when its last request for changes is not older than this. */
const WATCHED_MS = 5_000

/** Between two checks for observed changes. */
const POLL_MS = 250

export interface SaveRequest extends Omit<BeginSave, 'syncedMs'> {
  /** `periodic` saves limit the pause of processes; `checkpoint` and `stop` show one moment whatever it takes. */
  readonly kind: 'periodic' | 'checkpoint' | 'stop'
}

export interface VersionServiceDependencies {
  readonly thread: Pick<WorkerClient<VersionThread>, 'request'>
  /** Shared with the thread: one while processes are stopped. */
  readonly paused: Int32Array
  /** Stops the processes of the sandbox; returns what lets them go on. */
  readonly pause: () => () => void
  readonly wallClock: () => number
  readonly sleep: (ms: number) => Promise<void>
  /** Runs an action once after a delay; returns what cancels it. */
  readonly later: (ms: number, action: () => void) => () => void
}

type Segment = Extract<NextStep, { kind: 'segment' }>

/** The save that is running, or complete and not yet committed. */
interface Current {
  readonly save: string
  /** Number of the segment that `segment` is. */
  number: number
  segment: Segment | undefined
  summary: SaveSummary | undefined
  /** It began after all processes had ended. */
  readonly isLast: boolean
}

/** Serves control: one save at a time, whose segments are made as they are fetched. */
export class VersionService {
  readonly #deps: VersionServiceDependencies
  /** Requests of control are handled one after the other. */
  readonly #turns = new KeyedSerializer()
  #current: Current | undefined
  #resume: (() => void) | undefined
  #cancelTimer: (() => void) | undefined
  #isCapped = false
  /** Set when sandboxd is about to end. */
  #ending: PromiseWithResolvers<void> | undefined
  readonly #endingBegun = Promise.withResolvers<void>()
  /** A save that began after all processes had ended is complete. */
  #isSavedAtEnd = false
  /** When control last asked for changes, or was answered. */
  #askedMs = Number.NEGATIVE_INFINITY

  constructor(deps: VersionServiceDependencies) {
    this.#deps = deps
  }

  /** Begins a save; one that was not committed is given up. Returns when the first segment is ready, or nothing changed. */
  begin(request: SaveRequest): Promise<void> {
    return this.#inTurn(async () => {
      const { thread, wallClock } = this.#deps
      this.#goOn()
      this.#current = undefined
      const isLast = this.#ending !== undefined
      const syncedMs = wallClock()
      await thread.request({ verb: 'sync' })
      this.#stopProcesses(request.kind)
      try {
        const { kind: _, ...begin } = request
        const first = await thread.request({ verb: 'begin', begin: { ...begin, syncedMs } })
        this.#current = { save: request.save, number: -1, segment: undefined, summary: undefined, isLast }
        await this.#advance(this.#current, first)
      } catch (error) {
        this.#goOn()
        this.#current = undefined
        throw error
      }
    })
  }

  /** A segment of the running save: the last one that was fetched, or the next. Undefined after the last. */
  segment(id: SegmentId): Promise<Segment | undefined> {
    return this.#inTurn(async () => {
      const current = this.#running(id.slice(0, -4))
      const number = Number.parseInt(id.slice(-4), 16)
      if (number === current.number + 1) await this.#advance(current)
      if (number !== current.number)
        throw new SandwireError('conflict', 'Cannot read the segment: it is not the next one')
      return current.segment
    })
  }

  /** What the save found, once all its segments were fetched. */
  summary(save: string): Promise<SaveSummary> {
    return this.#inTurn(async () => {
      const { summary, isLast } = this.#running(save)
      if (summary === undefined)
        throw new SandwireError('conflict', 'Cannot read the summary: segments are left')
      // Control commits only what changed.
      if (isLast && !summary.isChanged) this.#isSavedAtEnd = true
      return summary
    })
  }

  /** Control has committed the version: the next save starts from it. */
  commit(save: string): Promise<void> {
    return this.#inTurn(async () => {
      const { isLast } = this.#running(save)
      await this.#deps.thread.request({ verb: 'commit' })
      if (isLast) this.#isSavedAtEnd = true
      this.#current = undefined
    })
  }

  /** Control saves the files whenever they change. */
  get isWatched(): boolean {
    return this.#current !== undefined || this.#deps.wallClock() - this.#askedMs < WATCHED_MS
  }

  /** Has control save the files once more before sandboxd ends. Returns when that is done, or after this time. */
  async awaitLastSave(timeoutMs: number): Promise<void> {
    if (timeoutMs === 0) return
    this.#ending = Promise.withResolvers()
    this.#endingBegun.resolve()
    const cancel = this.#deps.later(timeoutMs, this.#ending.resolve)
    await this.#ending.promise
    cancel()
  }

  /**
   * Number of changes observed since the start; undefined when they cannot be observed. Waits up to this long while it is
   * still `known`. `isEnding`: sandboxd ends when the files are saved.
   */
  async changes(
    known: number | undefined,
    waitMs: number,
  ): Promise<{
    readonly changes: number | undefined
    readonly head: string | undefined
    readonly isEnding: boolean
  }> {
    const { thread, wallClock, sleep } = this.#deps
    const endMs = wallClock() + waitMs
    for (;;) {
      this.#askedMs = wallClock()
      const polled = await thread.request({ verb: 'poll' })
      // Control has received the end of the last save: it sends this request after it.
      if (this.#isSavedAtEnd) this.#ending?.resolve()
      const isEnding = this.#ending !== undefined
      if (isEnding || polled.changes !== known || wallClock() >= endMs) return { ...polled, isEnding }
      await Promise.race([sleep(POLL_MS), this.#endingBegun.promise])
    }
  }

  /** Starts from a version whose files are on the disk. */
  adopt(version: VersionEnds, save: string): Promise<void> {
    return this.#inTurn(() => this.#deps.thread.request({ verb: 'adopt', version, save }))
  }

  beginRestore(version: VersionEnds, root: string | undefined): Promise<readonly SegmentId[]> {
    return this.#inTurn(() => this.#deps.thread.request({ verb: 'beginRestore', version, root }))
  }

  /** Takes the bytes over: the caller cannot use them afterwards. */
  addSegment(id: SegmentId, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    // A view of a larger buffer must not take the rest of it away.
    const owned = bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice()
    return this.#inTurn(() =>
      this.#deps.thread.request({ verb: 'addSegment', id, bytes: owned }, { moved: [owned.buffer] }),
    )
  }

  finishRestore(save: string): Promise<{ readonly files: number; readonly folders: number }> {
    return this.#inTurn(() => this.#deps.thread.request({ verb: 'finishRestore', save }))
  }

  #inTurn<Result>(action: () => Promise<Result>): Promise<Result> {
    return this.#turns.run('request', action)
  }

  #running(save: string): Current {
    if (this.#current?.save === save) return this.#current
    throw new SandwireError('conflict', 'Cannot continue the save: it is not running')
  }

  /** Makes the next segment, from the first step of the save if that is known; at the end there is none. */
  async #advance(current: Current, first?: NextStep): Promise<void> {
    if (current.summary !== undefined) {
      current.segment = undefined
      return
    }
    if (this.#resume !== undefined && !this.#isCapped) this.#armTimer(MAX_SILENCE_MS)
    let known = first
    for (;;) {
      const step = known ?? (await this.#deps.thread.request({ verb: 'next' }))
      known = undefined
      switch (step.kind) {
        case 'read':
          this.#goOn()
          continue
        case 'segment':
          current.segment = step
          current.number += 1
          return
        case 'end':
          current.segment = undefined
          current.summary = step.summary
          current.number += 1
          return
      }
    }
  }

  #stopProcesses(kind: SaveRequest['kind']): void {
    this.#resume = this.#deps.pause()
    Atomics.store(this.#deps.paused, 0, 1)
    this.#isCapped = kind === 'periodic'
    this.#armTimer(this.#isCapped ? MAX_PAUSE_MS : MAX_SILENCE_MS)
  }

  /** Bounds how long processes stay stopped. */
  #armTimer(ms: number): void {
    this.#cancelTimer?.()
    this.#cancelTimer = this.#deps.later(ms, () => this.#goOn())
  }

  #goOn(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    Atomics.store(this.#deps.paused, 0, 0)
    this.#resume?.()
    this.#resume = undefined
  }
}
