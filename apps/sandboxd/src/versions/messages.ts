import type { SegmentId } from '@sandwire/version-format'
import type { ThreadSetUp } from '../workspace/thread/thread-messages.ts'

export interface VersionSetUp extends ThreadSetUp {
  readonly roots: readonly { readonly name: string; readonly path: string }[]
  /** One when the processes of the sandbox are stopped. */
  readonly paused: SharedArrayBuffer
}

export interface BeginSave {
  /** First 28 hex digits of the ids of its segments. */
  readonly save: string
  /** The save that the tree must be at; another or none: the save is a base that stores everything. */
  readonly parent: string | undefined
  readonly record: string
  readonly isBase: boolean
  /** Makes a segment with the record even if nothing changed. */
  readonly isRecorded: boolean
  readonly replaced: readonly SegmentId[]
  /** Scans every folder, whatever the hints say. */
  readonly isFullScan: boolean
  /** Wall clock before changed pages were synced. */
  readonly syncedMs: number
}

/** What a save found; sent after its last segment. */
export interface SaveSummary {
  readonly isChanged: boolean
  readonly isBase: boolean
  /** Segments that the version needs. */
  readonly segments: readonly SegmentId[]
  /** Those of which less than half is needed; only a base finds them. */
  readonly sparse: readonly SegmentId[]
  readonly isFuzzy: boolean
  readonly unreadable: readonly string[]
  readonly unreadableCount: number
}

/** The ends of all segments of a version; the first `manifestCount` have its manifest. */
export interface VersionEnds {
  readonly ends: readonly RestoreEnd[]
  readonly manifestCount: number
}

export interface RestoreEnd {
  readonly id: SegmentId
  readonly sizeBytes: number
  readonly end: Uint8Array
}

export type VersionRequest =
  | { readonly verb: 'sync' }
  /** Begins a save; returns its first step. */
  | { readonly verb: 'begin'; readonly begin: BeginSave }
  /** The next step of the save. */
  | { readonly verb: 'next' }
  | { readonly verb: 'commit' }
  | { readonly verb: 'discard' }
  /** Number of observed changes, undefined when they cannot be observed, and the save that the next one starts from. */
  | { readonly verb: 'poll' }
  | { readonly verb: 'adopt'; readonly version: VersionEnds; readonly save: string }
  /** `root`: the only folder that is restored. The next save then starts from a version that control names (`adopt`). */
  | { readonly verb: 'beginRestore'; readonly version: VersionEnds; readonly root: string | undefined }
  | { readonly verb: 'addSegment'; readonly id: SegmentId; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly verb: 'finishRestore'; readonly save: string }

export interface VersionResults {
  readonly sync: undefined
  readonly begin: NextStep
  readonly next: NextStep
  readonly commit: undefined
  readonly discard: undefined
  readonly poll: { readonly changes: number | undefined; readonly head: string | undefined }
  readonly adopt: undefined
  readonly beginRestore: readonly SegmentId[]
  readonly addSegment: undefined
  readonly finishRestore: { readonly files: number; readonly folders: number }
}

export type NextStep =
  /** Every file has been read, and processes may go on. */
  | { readonly kind: 'read' }
  | {
      readonly kind: 'segment'
      readonly bytes: Uint8Array<ArrayBuffer>
      readonly trailerBytes: number
      readonly sha256: string
    }
  | { readonly kind: 'end'; readonly summary: SaveSummary }

/** Messages of the thread that saves and restores. */
export interface VersionThread {
  readonly setUp: VersionSetUp
  readonly request: VersionRequest
  readonly results: VersionResults
  readonly part: never
}
