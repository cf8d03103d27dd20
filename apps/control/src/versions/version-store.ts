import { SandwireError } from '@sandwire/protocol'
import type { SegmentId } from '@sandwire/version-format'
import { type Exec, numberOf, type Row, textOf } from '../sql.ts'
import type { ForkRecord } from './fork-records.ts'
import { HeldVersions } from './held-versions.ts'
import { PendingRestores } from './pending-restores.ts'
import type { FoundVersions } from './rebuild-versions.ts'
import { resolveRetention, type Retention, type RetentionSettings } from './retention.ts'
import type { SegmentFacts } from './segment-store.ts'
import { toDescription, toVersion } from './version-rows.ts'

/** `automatic`: saved while the sandbox ran or stopped. `checkpoint`: kept until it is deleted. */
export type VersionKind = 'automatic' | 'checkpoint'

export interface Version {
  readonly number: number
  /** The save that made its files; the next save starts from it. */
  readonly save: string
  readonly createdMs: number
  readonly kind: VersionKind
  readonly name: string | undefined
  /** Processes ran while it was saved: it may not show one moment. */
  readonly isFuzzy: boolean
  /** Number of files that could not be read. */
  readonly unreadable: number
  readonly manifests: readonly SegmentId[]
  readonly segments: readonly SegmentId[]
}

/** What users see of a version: without its segments, of which there may be thousands. */
export interface ListedVersion extends Omit<Version, 'save' | 'manifests' | 'segments'> {
  /** Bytes that its save added to the store. */
  readonly addedBytes: number
  /** Kept because a message of a conversation or run can be restored to it. */
  readonly isHeld: boolean
}

export interface SegmentRow extends SegmentFacts {
  readonly id: SegmentId
  readonly lineage: string
  /** Size of its end, which has the tables and the manifest. */
  readonly trailerBytes: number
}

/** A version with all segments that it needs. */
export interface VersionContent {
  readonly version: Version
  readonly segments: readonly SegmentRow[]
}

/** All versions of a sandbox, newest first. */
export interface VersionList {
  readonly versions: readonly ListedVersion[]
  readonly retention: Retention
  /** Bytes in the store. */
  readonly storedBytes: number
}

/** A sandbox that was made from a version of this one. */
export interface Fork {
  readonly sandbox: string
  /** When it was made, or last said that it needs the segments. */
  readonly checkedMs: number
  readonly segments: readonly SegmentId[]
}

/** What is left of a destroyed sandbox while forks need it. */
export interface DestroyedSandbox {
  readonly sandbox: string
  readonly forks: readonly Fork[]
  readonly segments: readonly SegmentRow[]
}

/**
 * Why files were restored. `requested`: a user asked for the version. `started`: the files are those that the sandbox had when it
 * last stopped. `lost`: the sandbox ended without saving, or its disk is missing; what changed after the version is lost.
 */
export type RestoreReason = 'requested' | 'started' | 'lost'

/** The version that a start of the sandbox began with. */
export interface RestoredFiles {
  readonly version: number
  /** When the version was saved. */
  readonly savedMs: number
  readonly restoredMs: number
  readonly reason: RestoreReason
}

const DAY_MS = 24 * 60 * 60 * 1000
/** Checkpoints of a sandbox: each save reads the list of all versions. */
const MAX_CHECKPOINTS = 500
/** A segment that is not needed is deleted after this time: a download or fork in progress may still read it. */
export const UNUSED_MS = 60 * 60 * 1000

/** Neither the newest version, nor one that the next start restores, nor one that is held. */
const UNPROTECTED = `number <> (SELECT MAX(number) FROM versions)
  AND number NOT IN (SELECT number FROM pending_restore UNION SELECT rest FROM partial_restore)
  AND number NOT IN (SELECT number FROM held_versions)`

function toSegment(row: Row): SegmentRow {
  return {
    id: textOf(row, 'id'),
    lineage: textOf(row, 'lineage'),
    sizeBytes: numberOf(row, 'bytes'),
    trailerBytes: numberOf(row, 'trailer_bytes'),
    sha256: textOf(row, 'sha256'),
  }
}

export interface LastStart {
  readonly epoch: string
  readonly provider: string
  /** Its files were saved before it ended. */
  readonly isSaved: boolean
  readonly restored: RestoredFiles | undefined
}

function toLastStart(row: Row): LastStart {
  const reason = row['reason']
  return {
    epoch: textOf(row, 'epoch'),
    provider: textOf(row, 'provider'),
    isSaved: numberOf(row, 'is_saved') === 1,
    restored:
      reason === 'requested' || reason === 'started' || reason === 'lost'
        ? {
            version: numberOf(row, 'number'),
            savedMs: numberOf(row, 'saved_ms'),
            restoredMs: numberOf(row, 'restored_ms'),
            reason,
          }
        : undefined,
  }
}

/** The versions of a sandbox and the segments that they need. */
export class VersionStore {
  /** Those that conversations and runs keep. */
  readonly held: HeldVersions
  /** What the next start restores. */
  readonly pending: PendingRestores
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
    this.held = new HeldVersions(exec)
    this.pending = new PendingRestores(exec)
  }

  /** The newest version: what the files were when they were last saved. */
  get head(): Version | undefined {
    return this.#exec('SELECT * FROM versions ORDER BY number DESC LIMIT 1').map(toVersion)[0]
  }

  /** Newest first. */
  list(): readonly Version[] {
    return this.#exec('SELECT * FROM versions ORDER BY number DESC').map(toVersion)
  }

  /** What users see of all versions, newest first. */
  describe(): readonly ListedVersion[] {
    // The id of a segment begins with its save. A version that was restored has the save of the first one, and added nothing.
    const query = `SELECT number, created_ms, kind, name, is_fuzzy, unreadable, COALESCE(
        (SELECT SUM(bytes) FROM segments WHERE id >= save AND id < save || 'g'
          AND number = (SELECT MIN(number) FROM versions AS same WHERE same.save = versions.save)), 0) AS added_bytes,
        number IN (SELECT number FROM held_versions) AS is_held
      FROM versions ORDER BY number DESC`
    return this.#exec(query).map((row) => ({
      ...toDescription(row),
      addedBytes: numberOf(row, 'added_bytes'),
      isHeld: numberOf(row, 'is_held') === 1,
    }))
  }

  find(nameOrNumber: string): Version | undefined {
    const number = /^[1-9][0-9]{0,14}$/.test(nameOrNumber) ? Number(nameOrNumber) : 0
    const query = 'SELECT * FROM versions WHERE name = ? OR number = ? ORDER BY name IS NULL LIMIT 1'
    return this.#exec(query, nameOrNumber, number).map(toVersion)[0]
  }

  segment(id: SegmentId): SegmentRow | undefined {
    return this.#exec('SELECT * FROM segments WHERE id = ?', id).map(toSegment)[0]
  }

  /** Records a segment before it is stored, so that it is found again if the save does not end. */
  addSegment(segment: SegmentRow, nowMs: number): void {
    this.#exec(
      `INSERT OR REPLACE INTO segments (id, lineage, bytes, trailer_bytes, sha256, unused_ms)
       VALUES (?, ?, ?, ?, ?, ?)`,
      segment.id,
      segment.lineage,
      segment.sizeBytes,
      segment.trailerBytes,
      segment.sha256,
      nowMs,
    )
  }

  /** Adds a version, unless another save was committed since it began. All its segments must be recorded. */
  commit(
    version: Omit<Version, 'number'>,
    parent: string | undefined,
  ): { readonly isCommitted: boolean; readonly missing?: SegmentId } {
    if (this.head?.save !== parent) return { isCommitted: false }
    const needed = new Set([...version.manifests, ...version.segments])
    for (const id of needed) if (this.segment(id) === undefined) return { isCommitted: false, missing: id }
    this.#insert(version)
    for (const id of needed) this.#exec('UPDATE segments SET unused_ms = NULL WHERE id = ?', id)
    return { isCommitted: true }
  }

  /** Keeps a version until it is deleted. */
  keep({ number }: Version): void {
    this.#exec("UPDATE versions SET kind = 'checkpoint' WHERE number = ?", number)
  }

  /** A version with its segments; throws `version_damaged` when one is not recorded. */
  content(version: Version): VersionContent {
    const segments = [...new Set([...version.manifests, ...version.segments])].map((id) => {
      const row = this.segment(id)
      if (row === undefined)
        throw new SandwireError('version_damaged', `Cannot read the version: segment ${id} is not known`)
      return row
    })
    return { version, segments }
  }

  /** Keeps the segments of a fork. */
  addFork({ fork, segments }: ForkRecord, nowMs: number): void {
    for (const segment of segments)
      if (this.segment(segment.id) === undefined) this.addSegment(segment, nowMs)
    this.#insertFork({ sandbox: fork, checkedMs: nowMs, segments: segments.map(({ id }) => id) })
    this.markUnused(nowMs)
  }

  forks(): readonly Fork[] {
    return this.#exec('SELECT * FROM forks').map((row) => ({
      sandbox: textOf(row, 'sandbox'),
      checkedMs: numberOf(row, 'checked_ms'),
      // Written by `addFork`.
      segments: JSON.parse(textOf(row, 'segments')) as SegmentId[],
    }))
  }

  setForkChecked(sandbox: string, nowMs: number): void {
    this.#exec('UPDATE forks SET checked_ms = ? WHERE sandbox = ?', nowMs, sandbox)
  }

  /** What must outlive a sandbox that is destroyed; undefined: no fork needs its segments. */
  forkedContent(sandbox: string): DestroyedSandbox | undefined {
    const forks = this.forks()
    const ids = [...new Set(forks.flatMap(({ segments }) => segments))]
    const segments = ids.map((id) => this.segment(id)).filter((row) => row !== undefined)
    return forks.length === 0 ? undefined : { sandbox, forks, segments }
  }

  /** Keeps the segments of a destroyed sandbox until no fork needs them. */
  keepForForks({ sandbox, forks, segments }: DestroyedSandbox, nowMs: number): void {
    this.#exec('INSERT OR REPLACE INTO destroyed VALUES (1, ?)', sandbox)
    for (const fork of forks) this.#insertFork(fork)
    for (const segment of segments) this.addSegment(segment, nowMs)
    this.markUnused(nowMs)
  }

  /** The sandbox, when it was destroyed and forks may need its segments. */
  get destroyedSandbox(): string | undefined {
    return this.#exec('SELECT sandbox FROM destroyed').map((row) => textOf(row, 'sandbox'))[0]
  }

  get isEmpty(): boolean {
    return this.#exec('SELECT id FROM segments LIMIT 1').length === 0 && this.forks().length === 0
  }

  #insertFork({ sandbox, checkedMs, segments }: Fork): void {
    const ids = JSON.stringify(segments)
    this.#exec('INSERT OR REPLACE INTO forks VALUES (?, ?, ?)', sandbox, checkedMs, ids)
  }

  removeFork(sandbox: string): void {
    this.#exec('DELETE FROM forks WHERE sandbox = ?', sandbox)
  }

  /** Makes a version of another sandbox the first one of this sandbox, which the next start restores. */
  adoptFork({ version, segments }: VersionContent, nowMs: number): void {
    if (this.head !== undefined) return
    for (const segment of segments) this.addSegment(segment, nowMs)
    const { number: _, ...content } = version
    this.commit({ ...content, kind: 'checkpoint' }, undefined)
    const [newest] = this.list()
    if (newest !== undefined) this.pending.set(newest.number, true)
  }

  /** Sandboxes that made the segments of its versions. */
  lineages(): readonly string[] {
    return this.#exec('SELECT DISTINCT lineage FROM segments').map((row) => textOf(row, 'lineage'))
  }

  /** Adds versions that were found in the store and are newer than those in the list. Returns their number. */
  addFound({ versions, segments }: FoundVersions, nowMs: number): number {
    const headMs = this.head?.createdMs ?? 0
    const known = new Set(this.list().map(({ save }) => save))
    const added = versions.filter(({ save, createdMs }) => createdMs > headMs && !known.has(save))
    for (const segment of segments)
      if (this.segment(segment.id) === undefined) this.addSegment(segment, nowMs)
    for (const version of added) {
      const isTaken = version.name !== undefined && this.find(version.name) !== undefined
      this.#insert(isTaken ? { ...version, name: undefined } : version)
    }
    this.markUnused(nowMs)
    return added.length
  }

  /** True when it needs segments that another sandbox made. */
  hasForeignSegments(sandbox: string): boolean {
    return this.#exec('SELECT id FROM segments WHERE lineage <> ? LIMIT 1', sandbox).length > 0
  }

  /** Makes the files of a version that was restored those of the newest one. */
  addRestored(version: Version, nowMs: number): void {
    if (version.number === this.head?.number) return
    this.#insert({ ...version, kind: 'automatic', name: undefined, createdMs: nowMs })
  }

  remove(number: number): void {
    this.#exec('DELETE FROM versions WHERE number = ?', number)
    this.held.forget(number)
  }

  /** Deletes versions that need not be kept. The newest one stays, and the one that the next start restores. */
  prune(nowMs: number): void {
    const { automaticVersions, checkpointDays } = this.retention
    this.#exec(
      `DELETE FROM versions WHERE kind = 'automatic' AND ${UNPROTECTED} AND number NOT IN
       (SELECT number FROM versions WHERE kind = 'automatic' ORDER BY number DESC LIMIT ?)`,
      automaticVersions,
    )
    if (checkpointDays === null) return
    const query = `DELETE FROM versions WHERE kind = 'checkpoint' AND ${UNPROTECTED} AND created_ms <= ?`
    this.#exec(query, nowMs - checkpointDays * DAY_MS)
  }

  /** When the next checkpoint is to be deleted; undefined: none is. */
  get nextExpiryMs(): number | undefined {
    const { checkpointDays } = this.retention
    if (checkpointDays === null) return undefined
    const query = `SELECT MIN(created_ms) AS first_ms FROM versions WHERE kind = 'checkpoint' AND ${UNPROTECTED}`
    const firstMs = this.#exec(query)[0]?.['first_ms']
    return typeof firstMs === 'number' ? firstMs + checkpointDays * DAY_MS : undefined
  }

  get retention(): Retention {
    const { account, sandbox } = this.#retentionSettings
    return resolveRetention(account, sandbox)
  }

  /** Sets what the sandbox has itself, or what it has from its account. */
  setRetention(of: 'sandbox' | 'account', settings: RetentionSettings): void {
    const { sandbox, account } = this.#retentionSettings
    const ofSandbox = JSON.stringify(of === 'sandbox' ? settings : sandbox)
    const ofAccount = JSON.stringify(of === 'account' ? settings : account)
    // Every list of versions takes over the settings of the account.
    if (ofSandbox === JSON.stringify(sandbox) && ofAccount === JSON.stringify(account)) return
    this.#exec('INSERT OR REPLACE INTO retention VALUES (1, ?, ?)', ofSandbox, ofAccount)
  }

  get #retentionSettings(): { readonly sandbox: RetentionSettings; readonly account: RetentionSettings } {
    const [row] = this.#exec('SELECT sandbox, account FROM retention')
    if (row === undefined) return { sandbox: {}, account: {} }
    // Written by `setRetention`.
    const read = (column: string) => JSON.parse(textOf(row, column)) as RetentionSettings
    return { sandbox: read('sandbox'), account: read('account') }
  }

  /** Updates since when segments are not needed, after versions or forks were removed. */
  markUnused(nowMs: number): void {
    const needed = new Set([
      ...this.list().flatMap(({ manifests, segments }) => [...manifests, ...segments]),
      ...this.forks().flatMap(({ segments }) => segments),
    ])
    for (const row of this.#exec('SELECT id, unused_ms FROM segments')) {
      const id = textOf(row, 'id')
      const isUnused = row['unused_ms'] !== null
      if (needed.has(id) === !isUnused) continue
      this.#exec('UPDATE segments SET unused_ms = ? WHERE id = ?', needed.has(id) ? null : nowMs, id)
    }
  }

  /** Segments that have not been needed for this long. */
  unused(nowMs: number, unusedMs = UNUSED_MS): readonly SegmentRow[] {
    this.markUnused(nowMs)
    return this.#exec('SELECT * FROM segments WHERE unused_ms <= ?', nowMs - unusedMs).map(toSegment)
  }

  /** Since when the first segment is not needed; undefined: all are needed. */
  get firstUnusedMs(): number | undefined {
    const [row] = this.#exec('SELECT MIN(unused_ms) AS first_ms FROM segments')
    const firstMs = row?.['first_ms']
    return typeof firstMs === 'number' ? firstMs : undefined
  }

  /** Forgets a segment that was deleted from the store. */
  removeSegment(id: SegmentId): void {
    this.#exec('DELETE FROM segments WHERE id = ?', id)
  }

  /** The last start whose files were complete. */
  get lastStart(): LastStart | undefined {
    return this.#exec('SELECT * FROM last_start').map(toLastStart)[0]
  }

  /** Records that the files of a start are complete; `restored` when they are those of a version. */
  setStarted(epoch: string, provider: string, restored?: RestoredFiles): void {
    this.#exec(
      'INSERT OR REPLACE INTO last_start VALUES (1, ?, ?, 0, ?, ?, ?, ?)',
      epoch,
      provider,
      restored?.version ?? null,
      restored?.savedMs ?? null,
      restored?.restoredMs ?? null,
      restored?.reason ?? null,
    )
  }

  /** Records that a start has saved its files before its end. */
  setSavedAtEnd(epoch: string, isSaved: boolean): void {
    const value = isSaved ? 1 : 0
    this.#exec('UPDATE last_start SET is_saved = ? WHERE epoch = ? AND is_saved <> ?', value, epoch, value)
  }

  /** Bytes that one save added to the store. */
  bytesOf(save: string): number {
    // The id of a segment begins with its save.
    const query = 'SELECT COALESCE(SUM(bytes), 0) AS bytes FROM segments WHERE id >= ? AND id < ?'
    const [row] = this.#exec(query, save, `${save}g`)
    return row === undefined ? 0 : numberOf(row, 'bytes')
  }

  /** Bytes in the store. */
  get storedBytes(): number {
    const [row] = this.#exec('SELECT COALESCE(SUM(bytes), 0) AS bytes FROM segments')
    return row === undefined ? 0 : numberOf(row, 'bytes')
  }

  /** Bytes in the store by the sandbox that made them. */
  get storedByLineage(): Readonly<Record<string, number>> {
    const rows = this.#exec('SELECT lineage, SUM(bytes) AS bytes FROM segments GROUP BY lineage')
    return Object.fromEntries(rows.map((row) => [textOf(row, 'lineage'), numberOf(row, 'bytes')]))
  }

  /** Throws `ceiling_exceeded` when there is no room for another checkpoint. */
  checkCheckpoints(): void {
    const [row] = this.#exec("SELECT COUNT(*) AS count FROM versions WHERE kind = 'checkpoint'")
    if (row === undefined || numberOf(row, 'count') < MAX_CHECKPOINTS) return
    const details = { ceiling: 'sandbox.checkpoints', limit: MAX_CHECKPOINTS, asked: 1 }
    const message = `Cannot save the files: a sandbox may have at most ${MAX_CHECKPOINTS} checkpoints. Delete some`
    throw new SandwireError('ceiling_exceeded', message, { details })
  }

  #insert(version: Omit<Version, 'number'>): void {
    this.#exec(
      `INSERT INTO versions (save, created_ms, kind, name, is_fuzzy, unreadable, manifests, segments)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      version.save,
      version.createdMs,
      version.kind,
      version.name ?? null,
      version.isFuzzy ? 1 : 0,
      version.unreadable,
      JSON.stringify(version.manifests),
      JSON.stringify(version.segments),
    )
  }
}
