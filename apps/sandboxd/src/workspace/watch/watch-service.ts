import { SandwireError } from '@sandwire/protocol'
import type { ServerSentEvent } from '../../http/event-stream.ts'
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

/** A notice as a server-sent event. */
export function toServerSentEvent(notice: Notice): ServerSentEvent {
  return { event: notice.kind, data: dataOf(notice) }
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
