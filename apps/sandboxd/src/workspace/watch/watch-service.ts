import { raceTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import { Readiness } from '../../processes/linux/readiness.ts'
import type { AsUser } from '../../processes/run-as.ts'
import { parsePath, pathIn } from '../beneath/path.ts'
import type { Files } from '../files.ts'
import { type BatchLimits, type Notice, NoticeQueue } from './change-notices.ts'
import { FolderWatch } from './folder-watch.ts'

export interface WatchLimits extends BatchLimits {
  /** Watching clients: each needs an inotify instance, of which a user has 128. */
  readonly maxWatchers: number
  /** Per client. */
  readonly maxFolders: number
}

export const WATCH_LIMITS: WatchLimits = {
  quietMs: 50,
  maxWaitMs: 500,
  maxPaths: 5_000,
  maxWatchers: 32,
  maxFolders: 10_000,
}

interface WatchDependencies {
  readonly files: Pick<Files, 'openFolder' | 'stat' | 'walk'>
  readonly asUser: AsUser
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly limits?: WatchLimits
}

/** A client's watch. The receiver closes it. */
export interface Watching {
  readonly next: NoticeQueue['next']
  readonly close: () => void
}

/** Lets a bounded number of clients watch folders. */
export class WatchService {
  readonly #deps: WatchDependencies
  readonly #limits: WatchLimits
  #readiness: Readiness | undefined
  #watchers = 0

  constructor(deps: WatchDependencies) {
    this.#deps = deps
    this.#limits = deps.limits ?? WATCH_LIMITS
  }

  /** Rejects with `rate_limited` when too many clients watch, and with the error of the path. */
  async open(path: string, isRecursive: boolean): Promise<Watching> {
    parsePath(path)
    if (this.#watchers >= this.#limits.maxWatchers) throw tooMany()
    this.#watchers += 1
    try {
      return await this.#open(pathIn(path, ''), isRecursive)
    } catch (error) {
      this.#watchers -= 1
      throw error
    }
  }

  async #open(path: string, isRecursive: boolean): Promise<Watching> {
    const { files, asUser, now } = this.#deps
    this.#readiness ??= Readiness.open()
    if (this.#readiness === undefined) throw tooMany()
    const notices = new NoticeQueue(this.#limits, now)
    const options = { path, isRecursive, maxFolders: this.#limits.maxFolders }
    const watch = await FolderWatch.open(notices, options, { files, asUser, readiness: this.#readiness })
    if (watch === undefined) throw tooMany()
    let isOpen = true
    const close = (): void => {
      if (isOpen) this.#watchers -= 1
      isOpen = false
      watch.close()
    }
    return { next: () => notices.next(), close }
  }
}

function tooMany(): SandwireError {
  return new SandwireError('rate_limited', 'Cannot watch the folder: too many clients are watching')
}

/** Shorter than the idle timeouts of common proxies. */
const HEARTBEAT_MS = 15_000

/** A server-sent-event comment, which clients ignore. */
const COMMENT = ':\n\n'

/** Converts a watch to server-sent events, with backpressure. Canceling the stream closes the watch. */
export function toEventStream(watching: Watching, heartbeatMs = HEARTBEAT_MS): ReadableStream<Uint8Array> {
  let waiting: Promise<Notice | undefined> | undefined
  let hasBegun = false
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // Sends the first bytes at once, because watching a large tree takes a while.
        if (!hasBegun) {
          hasBegun = true
          controller.enqueue(Buffer.from(COMMENT))
          return
        }
        waiting ??= watching.next()
        const notice = await raceTimeout(waiting, heartbeatMs, 'heartbeat')
        if (notice !== 'heartbeat') waiting = undefined
        if (notice === undefined) {
          watching.close()
          controller.close()
        } else controller.enqueue(Buffer.from(notice === 'heartbeat' ? COMMENT : writeEvent(notice)))
      },
      cancel: () => watching.close(),
    },
    { highWaterMark: 0 },
  )
}

/** JSON contains no line breaks, so one `data` line suffices. */
function writeEvent(notice: Notice): string {
  return `event: ${notice.kind}\ndata: ${JSON.stringify(dataOf(notice))}\n\n`
}

function dataOf(notice: Notice): object {
  switch (notice.kind) {
    case 'ready':
      return { folders: notice.folders }
    case 'change':
      return { paths: notice.changes }
    case 'overflow':
      return { reason: notice.reason }
  }
}
