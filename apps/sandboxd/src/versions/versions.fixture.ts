import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BuiltSegment, type SegmentId } from '@sandwire/version-format'
import { COMPRESSION } from './compression.ts'
import { ContentArena } from './content-arena.ts'
import { deviceOf } from './entry-stat.ts'
import { Restore, type SegmentEnd } from './restore.ts'
import { Save, type SaveOptions, type SaveResult } from './save.ts'
import { SavedTree } from './saved-tree.ts'
import { type ExcludesOf, FolderScanner } from './scan.ts'

/** A committed version: what control would remember. */
export interface SavedVersion {
  readonly segments: readonly SegmentId[]
  /** Segments with a manifest, from the base to this version. */
  readonly manifests: readonly SegmentId[]
}

/** A folder that is saved into memory, as control and a store would. */
export class VersionFixture implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'sandwire-versions-'))
  readonly workspace = join(this.folder, 'workspace')
  readonly home = join(this.folder, 'home')
  readonly tree = new SavedTree()
  readonly store = new Map<SegmentId, BuiltSegment>()
  head: SavedVersion | undefined
  /** Open for the life of the fixture, as sandboxd has them. */
  readonly #fds: Readonly<Record<string, number>>
  #saves = 0

  constructor() {
    mkdirSync(this.workspace)
    mkdirSync(this.home)
    this.#fds = { workspace: openSync(this.workspace, 'r'), home: openSync(this.home, 'r') }
  }

  /** Runs a save and commits it, unless `commits` is false. */
  save(
    options: Partial<Omit<SaveOptions, 'roots' | 'tree'>> & {
      readonly commits?: boolean
      readonly excludesOf?: ExcludesOf
    } = {},
  ): SaveResult {
    this.#saves += 1
    const prefix = this.#saves.toString(16).padStart(28, '0')
    const excludesOf = options.excludesOf ?? (() => undefined)
    const segmentId = (number: number): SegmentId => prefix + number.toString(16).padStart(4, '0')
    const save = new Save({
      roots: Object.entries(this.#fds).map(([name, fd]) => ({
        name,
        fd,
        scanner: new FolderScanner(deviceOf(fd), excludesOf),
      })),
      tree: this.tree,
      compression: COMPRESSION,
      arena: new ContentArena(),
      segmentId,
      record: Buffer.from(`{"version":${this.#saves}}`),
      isBase: this.head === undefined,
      isRecorded: false,
      replaced: new Set(),
      // Later than every change, so that no file is read twice.
      syncedMs: Date.now() + 3_600_000,
      isPaused: () => true,
      ...options,
    }).run()
    const made: BuiltSegment[] = []
    for (;;) {
      const { done, value } = save.next()
      if (done === true) return this.#commit(value, made, segmentId, options)
      if (value !== 'read') made.push(value)
    }
  }

  #commit(
    result: SaveResult,
    made: readonly BuiltSegment[],
    segmentId: (number: number) => SegmentId,
    {
      commits = true,
      isBase = this.head === undefined,
    }: { readonly commits?: boolean; readonly isBase?: boolean },
  ): SaveResult {
    if (!commits) return result
    this.tree.refresh(result.refreshed)
    if (made.length === 0) return result
    for (const [number, segment] of made.entries()) this.store.set(segmentId(number), segment)
    const last = segmentId(made.length - 1)
    this.head = {
      segments: result.segments,
      manifests: isBase ? [last] : [...(this.head?.manifests ?? []), last],
    }
    this.tree.apply(result.change)
    return result
  }

  /** Restores a version into a new folder, or one root of it into an earlier one; returns its path. */
  restore(
    version = this.head,
    {
      only,
      target = mkdtempSync(join(this.folder, 'restored-')),
    }: { readonly only?: string; readonly target?: string } = {},
  ): string {
    if (version === undefined) throw new Error('Nothing was saved')
    const roots = ['workspace', 'home'].map((name) => {
      mkdirSync(join(target, name), { recursive: true })
      return { name, fd: openSync(join(target, name), 'r') }
    })
    const others = version.segments.filter((id) => !version.manifests.includes(id))
    try {
      using restore = new Restore({
        roots,
        compression: COMPRESSION,
        ends: [...version.manifests, ...others].map((id) => this.#end(id)),
        manifestCount: version.manifests.length,
        ...(only === undefined ? {} : { only }),
      })
      for (const id of restore.begin()) restore.addSegment(id, this.#segment(id).bytes)
      restore.finish()
    } finally {
      for (const { fd } of roots) closeSync(fd)
    }
    return target
  }

  #segment(id: SegmentId): BuiltSegment {
    const segment = this.store.get(id)
    if (segment === undefined) throw new Error(`Segment ${id} was not stored`)
    return segment
  }

  #end(id: SegmentId): SegmentEnd {
    const { bytes, trailerBytes } = this.#segment(id)
    return { id, sizeBytes: bytes.byteLength, end: bytes.subarray(bytes.byteLength - trailerBytes) }
  }

  [Symbol.dispose](): void {
    for (const fd of Object.values(this.#fds)) closeSync(fd)
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Everything about a tree that a restore must bring back, one line per entry. */
export function describeTree(folder: string): string {
  const find = Bun.spawnSync(['find', '.', '-printf', '%P\\0%y %m %s %T@ %n %l\\0\\n'], { cwd: folder })
  const contents = Bun.spawnSync(['sh', '-c', 'find . -type f -print0 | sort -z | xargs -0 -r sha256sum'], {
    cwd: folder,
  })
  const lines = find.stdout.toString('latin1').split('\0\n').toSorted()
  // The size of a folder depends on its file system's history.
  return `${lines.map((line) => line.replace(/\0d (\d+) \d+/, '\0d $1')).join('\n')}\n${contents.stdout.toString('latin1')}`
}
