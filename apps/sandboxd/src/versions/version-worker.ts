import { SandwireError } from '@sandwire/protocol'
import { freeBytes, type SegmentId } from '@sandwire/version-format'
import { fileError } from '../workspace/beneath/file-error.ts'
import { AT_FDCWD, O_DIRECTORY, O_RDONLY } from '../workspace/beneath/constants.ts'
import { cString, openAt } from '../workspace/beneath/system-calls.ts'
import { serveThread } from '../workspace/thread/serve-thread.ts'
import { Inotify } from '../workspace/watch/inotify.ts'
import { ChangeHints } from './change-hints.ts'
import { COMPRESSION } from './compression.ts'
import { ContentArena } from './content-arena.ts'
import { deviceOf } from './entry-stat.ts'
import { Excludes } from './excludes.ts'
import type {
  BeginSave,
  NextStep,
  VersionEnds,
  VersionRequest,
  VersionResults,
  VersionSetUp,
  VersionThread,
} from './messages.ts'
import { Restore } from './restore.ts'
import { Save, type SaveResult, type SaveRoot, type SaveStep } from './save.ts'
import { SavedTree } from './saved-tree.ts'
import { FolderScanner } from './scan.ts'
import { syncFileSystem } from './system-calls.ts'

interface Running {
  readonly begin: BeginSave
  readonly isBase: boolean
  readonly steps: Generator<SaveStep, SaveResult, void>
  result?: SaveResult
}

/** Saves and restores the roots. Every operation blocks this thread only. */
class Service {
  readonly #roots: readonly SaveRoot[]
  readonly #excludes: readonly Excludes[]
  readonly #paused: Int32Array
  readonly #hints = new ChangeHints(Inotify.open())
  readonly #arena = new ContentArena()
  #tree = new SavedTree()
  /** The save that the tree is at. */
  #head: string | undefined
  #running: Running | undefined
  #restore: Restore | undefined

  constructor({ roots, paused }: VersionSetUp) {
    this.#paused = new Int32Array(paused)
    const opened = roots.map(({ name, path }) => {
      const fd = openAt(AT_FDCWD, cString(Buffer.from(path)), O_RDONLY | O_DIRECTORY)
      if (fd < 0) throw fileError('open', path, fd)
      return { name, fd, excludes: new Excludes(name, fd) }
    })
    this.#excludes = opened.map(({ excludes }) => excludes)
    this.#roots = opened.map(({ name, fd, excludes }) => ({
      name,
      fd,
      scanner: new FolderScanner(deviceOf(fd), (folder) => excludes.of(folder)),
    }))
  }

  perform(request: VersionRequest): VersionResults[keyof VersionResults] {
    switch (request.verb) {
      case 'sync':
        for (const { fd } of this.#roots) syncFileSystem(fd)
        return undefined
      case 'begin':
        return this.#begin(request.begin)
      case 'next':
        return this.#next()
      case 'commit':
        return this.#commit()
      case 'discard':
        return this.#discard()
      case 'poll':
        return { changes: this.#hints.poll(), head: this.#head }
      case 'adopt':
        return this.#adopt(request.version, request.save)
      case 'beginRestore':
        this.#restore?.[Symbol.dispose]()
        this.#restore = this.#open(request.version, request.root)
        return this.#restore.begin()
      case 'addSegment':
        this.#restored.addSegment(request.id, request.bytes)
        freeBytes(request.bytes)
        return undefined
      case 'finishRestore': {
        const counts = this.#restored.finish()
        if (this.#restored.isWhole) this.#load(this.#restored, request.save, Date.now())
        this.#restore = undefined
        return counts
      }
    }
  }

  /** Makes a version the one that the next save starts from. */
  #load(restore: Restore, save: string, unchangedBeforeMs: number): void {
    const { tree, ...content } = restore.content
    this.#tree = new SavedTree()
    this.#tree.load(tree, content, unchangedBeforeMs)
    this.#head = save
    this.#running = undefined
    this.#hints.invalidate()
  }

  /** Continues from the newest version: the files are on the disk, and this process is new. */
  #adopt(ends: VersionEnds, save: string): undefined {
    using version = this.#open(ends)
    this.#load(version, save, version.content.scannedMs)
    return undefined
  }

  #open({ ends, manifestCount }: VersionEnds, only?: string): Restore {
    return new Restore({
      roots: this.#roots,
      compression: COMPRESSION,
      ends,
      manifestCount,
      ...(only === undefined ? {} : { only }),
    })
  }

  get #restored(): Restore {
    if (this.#restore === undefined) throw new SandwireError('conflict', 'Cannot restore: it was not begun')
    return this.#restore
  }

  #begin(begin: BeginSave): NextStep {
    // Control committed the save, and the message that says so was lost.
    if (this.#running?.begin.save === begin.parent && this.#running?.result !== undefined) this.#commit()
    else this.#discard()
    this.#arena.clear()
    const isKnown = begin.parent !== undefined && begin.parent === this.#head
    if (!isKnown) this.#tree = new SavedTree()
    const isBase = begin.isBase || !isKnown
    const hasNewRules = this.#excludes.filter((excludes) => excludes.reload()).length > 0
    const needsFullScan = isBase || hasNewRules || begin.isFullScan || begin.replaced.length > 0
    const hints = this.#hints.take()
    const segmentId = (number: number): SegmentId => begin.save + number.toString(16).padStart(4, '0')
    const save = new Save({
      roots: this.#roots,
      ...(hints === undefined || needsFullScan ? {} : { hints }),
      tree: this.#tree,
      compression: COMPRESSION,
      arena: this.#arena,
      segmentId,
      record: Buffer.from(begin.record),
      isBase,
      isRecorded: begin.isRecorded,
      replaced: new Set(begin.replaced),
      syncedMs: begin.syncedMs,
      onFolder: (fd, path) => this.#hints.watch(fd, path),
      isPaused: () => Atomics.load(this.#paused, 0) === 1,
    })
    this.#running = { begin, isBase, steps: save.run() }
    // At once: processes are stopped, and every message to this thread takes time.
    return this.#next()
  }

  #next(): NextStep {
    const running = this.#running
    if (running === undefined)
      throw new SandwireError('conflict', 'Cannot continue the save: none is running')
    const { done, value } = running.steps.next()
    if (done !== true) {
      if (value === 'read') return { kind: 'read' }
      const sha256 = new Bun.CryptoHasher('sha256').update(value.bytes).digest('hex')
      return { kind: 'segment', bytes: value.bytes, trailerBytes: value.trailerBytes, sha256 }
    }
    running.result = value
    this.#arena.trim()
    this.#tree.refresh(value.refreshed)
    const { segments, sparse, made, isFuzzy, unreadable, unreadableCount } = value
    const { isBase } = running
    return {
      kind: 'end',
      summary: { isChanged: made > 0, isBase, segments, sparse, isFuzzy, unreadable, unreadableCount },
    }
  }

  #commit(): undefined {
    const running = this.#running
    if (running?.result === undefined)
      throw new SandwireError('conflict', 'Cannot commit the save: it is not complete')
    this.#tree.apply(running.result.change)
    this.#head = running.begin.save
    this.#running = undefined
    // A large save leaves garbage of many times the tree's size, which would stay until the next one. Later: it is in use here.
    if (running.result.made > 1) setTimeout(() => Bun.gc(true), 0)
    return undefined
  }

  #discard(): undefined {
    if (this.#running === undefined) return undefined
    // A save that found no change leaves nothing to do again.
    if (this.#running.result?.made !== 0) this.#hints.invalidate()
    this.#running = undefined
    return undefined
  }
}

serveThread<VersionThread>((setUp, send) => {
  const service = new Service(setUp)
  return {
    request: (id, request) => {
      const result = service.perform(request)
      // A segment is moved instead of copied.
      const isSegment = typeof result === 'object' && 'kind' in result && result.kind === 'segment'
      send({ kind: 'done', id, result }, isSegment ? [result.bytes.buffer] : [])
    },
  }
})
