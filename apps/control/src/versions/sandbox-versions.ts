import { SandwireError } from '@sandwire/protocol'
import { ByteWriter, type SegmentId } from '@sandwire/version-format'
import { z } from 'zod'
import { readToEnd } from '../http/read-bounded.ts'
import {
  type Caller,
  controlItself,
  invalidResponse,
  readSandboxdError,
  type SandboxdClient,
} from '../sandbox/sandboxd-client.ts'
import { storeFork } from './fork-records.ts'
import { findVersions } from './rebuild-versions.ts'
import { segmentKey, type SegmentStore, storeUnavailable } from './segment-store.ts'
import { ZSTANDARD } from './zstandard.ts'
import type { SegmentRow, Version, VersionContent, VersionKind, VersionStore } from './version-store.ts'

/** Between two versions of a rebuild, each of which takes about as long: requests of others run meanwhile. */
const REBUILD_PAUSE_MS = 50
/** Scanning and reading before the first segment, on a slow disk. */
const BEGIN_TIMEOUT_MS = 5 * 60 * 1000
const CALL_TIMEOUT_MS = 60_000
/** Deltas after which a version lists every folder again. */
const MAX_DELTAS = 32
/** Small segments are stored again together when there are this many. */
const MAX_SMALL_SEGMENTS = 16
const SMALL_BYTES = 512 * 1024
/** Mostly unneeded segments whose rest one save stores again: processes are stopped while it is read. */
const MAX_SPARSE_SEGMENTS = 4
/** Segments written to the sandbox at a time. */
const CONCURRENT_RESTORES = 2
/** Tables read from the store at a time; their number decides how long a restore takes. */
const CONCURRENT_READS = 4
/** Tables of all segments of a version. */
const MAX_ENDS_BYTES = 64 * 1024 * 1024
/** Segments of one save, and so at most about 500 GB. */
const MAX_SEGMENTS = 0xffff

const sha256 = z.string().regex(/^[0-9a-f]{64}$/)
const segmentId = z.string().regex(/^[0-9a-f]{32}$/)
const summaryBody = z.object({
  isChanged: z.boolean(),
  isBase: z.boolean(),
  segments: z.array(segmentId),
  sparse: z.array(segmentId),
  isFuzzy: z.boolean(),
  unreadableCount: z.int().min(0),
})
const neededBody = z.object({ needed: z.array(segmentId) })
const restoredBody = z.object({ files: z.int().min(0), folders: z.int().min(0) })

export interface SandboxAddress {
  readonly sandbox: string
  readonly address: string
}

/** A running sandbox, and whether it still is the one that a save began with. */
export interface SaveTarget extends SandboxAddress {
  readonly isCurrent: () => boolean
}

export interface SaveOptions {
  /** How long processes may be stopped; see sandboxd. */
  readonly pause: 'periodic' | 'checkpoint' | 'stop'
  readonly kind: VersionKind
  readonly name?: string
  /** Reads every folder instead of those in which inotify saw changes. */
  readonly isFullScan: boolean
  readonly requestId: string
}

export interface VersionsDependencies {
  readonly store: VersionStore
  readonly segments: SegmentStore
  /** Counts bytes that are about to be stored; throws `ceiling_exceeded` when there is no room for them. */
  readonly admit: (bytes: number) => Promise<void>
  readonly sandboxd: (sandbox: string) => SandboxdClient
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  /** Random bytes in hex. */
  readonly randomHex: (bytes: number) => string
}

/** Saves the files of a running sandbox as versions, and restores them. Segments pass through; control does not read them. */
export class SandboxVersions {
  readonly #deps: VersionsDependencies
  /** Segments of which less than half is needed, as far as known. */
  #sparse: readonly SegmentId[] = []

  constructor(deps: VersionsDependencies) {
    this.#deps = deps
  }

  /** Saves what changed. Returns the newest version, which is the previous one when nothing did. */
  async save(target: SaveTarget, options: SaveOptions): Promise<Version | undefined> {
    const { store, nowMs, randomHex } = this.#deps
    const head = store.head
    const save = randomHex(14)
    await this.#request(target, options.requestId, 'POST', '/versions/saves', {
      ms: BEGIN_TIMEOUT_MS,
      body: {
        save,
        ...(head === undefined ? {} : { parent: head.save }),
        kind: options.pause,
        record: JSON.stringify(this.#record(target, save, options)),
        isBase: (head?.manifests.length ?? 0) >= MAX_DELTAS,
        isFullScan: options.isFullScan,
        // The store has the name of every checkpoint.
        isRecorded: options.kind === 'checkpoint',
        replaced: this.#replaced(head),
      },
    })
    const made = await this.#pull(target, save, options.requestId)
    const summary = summaryBody.parse(
      await this.#request(target, options.requestId, 'GET', `/versions/saves/${save}`),
    )
    const last = made.at(-1)
    if (!summary.isChanged || last === undefined) return store.head
    const version: Omit<Version, 'number'> = {
      save,
      createdMs: nowMs(),
      kind: options.kind,
      name: options.name,
      isFuzzy: summary.isFuzzy,
      unreadable: summary.unreadableCount,
      manifests: summary.isBase ? [last] : [...(head?.manifests ?? []), last],
      segments: summary.segments,
    }
    // From here to the commit nothing else runs: the check and the change are one step.
    if (!target.isCurrent())
      throw new SandwireError('sandbox_stopped', 'Cannot save the files: the sandbox was restarted')
    const { isCommitted, missing } = store.commit(version, head?.save)
    if (missing !== undefined)
      throw new SandwireError('internal', `Cannot save the files: segment ${missing} was not stored`)
    if (!isCommitted) throw new SandwireError('conflict', 'Cannot save the files: another save was committed')
    if (summary.isBase) this.#sparse = summary.sparse
    store.prune(nowMs())
    store.markUnused(nowMs())
    // Without this message the next save still starts from this version: it names its parent.
    await this.#request(target, options.requestId, 'POST', `/versions/saves/${save}`).catch(() => undefined)
    return store.head
  }

  /** Replaces the files of a sandbox that has not started a process yet by a version; `root`: only those of one folder. */
  async restore(
    target: SandboxAddress,
    version: Version,
    requestId: string,
    {
      onProgress = () => undefined,
      root,
    }: { readonly onProgress?: (done: number, total: number) => void; readonly root?: string } = {},
  ): Promise<{ readonly files: number; readonly folders: number }> {
    const ends = await this.#readEnds(version)
    const query = root === undefined ? '' : `?root=${root}`
    const begun = await this.#request(target, requestId, 'POST', `/versions/restore${query}`, {
      ms: BEGIN_TIMEOUT_MS,
      bytes: ends,
    })
    const { needed } = neededBody.parse(begun)
    const queue = needed.map((id) => this.#row(id)).values()
    let done = 0
    const work = async (): Promise<void> => {
      for (const row of queue) {
        await this.#restoreSegment(target, row, requestId)
        done += 1
        onProgress(done, needed.length)
      }
    }
    await Promise.all(Array.from({ length: CONCURRENT_RESTORES }, work))
    const path = `/versions/restore/${version.save}`
    return restoredBody.parse(await this.#request(target, requestId, 'POST', path, { ms: BEGIN_TIMEOUT_MS }))
  }

  /** Has a new sandboxd start from a version whose files are on its disk, so that it stores only what changed since. */
  async adopt(target: SandboxAddress, version: Version, requestId: string): Promise<void> {
    const bytes = await this.#readEnds(version)
    const path = `/versions/adopt/${version.save}`
    await this.#request(target, requestId, 'POST', path, { ms: BEGIN_TIMEOUT_MS, bytes })
  }

  /** Adds versions that are in the store and not in the list. */
  async rebuild(sandbox: string): Promise<void> {
    const { store, segments, nowMs } = this.#deps
    const found = await findVersions(segments, ZSTANDARD, {
      sandbox,
      lineages: store.lineages(),
      pause: () => this.#deps.sleep(REBUILD_PAUSE_MS),
    })
    store.addFound(found, nowMs())
  }

  /** Keeps the segments of a version for the sandbox `fork`, also if the list of versions is lost. */
  async addFork(parent: string, fork: string, version: Version): Promise<VersionContent> {
    const { store, segments, nowMs } = this.#deps
    const content = store.content(version)
    const record = { fork, segments: content.segments }
    await storeFork(segments, parent, record)
    store.addFork(record, nowMs())
    return content
  }

  /** What the last segment says about its version, so that the list can be rebuilt from the store alone. */
  #record(target: SaveTarget, save: string, { kind, name }: SaveOptions): Record<string, unknown> {
    const { store, nowMs } = this.#deps
    const { sandbox } = target
    return { sandbox, save, parent: store.head?.save ?? null, kind, name: name ?? null, savedMs: nowMs() }
  }

  /** Segments whose content the next save stores again: many small ones together, and the rest of mostly unneeded ones. */
  #replaced(head: Version | undefined): readonly SegmentId[] {
    if (head === undefined) return []
    const small = head.segments.filter((id) => (this.#deps.store.segment(id)?.sizeBytes ?? 0) < SMALL_BYTES)
    const sparse = this.#sparse.filter((id) => head.segments.includes(id)).slice(0, MAX_SPARSE_SEGMENTS)
    return [...new Set([...(small.length >= MAX_SMALL_SEGMENTS ? small : []), ...sparse])]
  }

  /** Moves the segments of a save from the sandbox to the store; returns their ids. */
  async #pull(target: SaveTarget, save: string, requestId: string): Promise<readonly SegmentId[]> {
    const { store, segments, admit, nowMs } = this.#deps
    const made: SegmentId[] = []
    for (let number = 0; number <= MAX_SEGMENTS; number += 1) {
      const id = save + number.toString(16).padStart(4, '0')
      const response = await this.#fetch(target, requestId, {
        method: 'GET',
        path: `/versions/segments/${id}`,
      })
      if (response.status === 204) return made
      const row = rowOf(response, id, target.sandbox)
      if (response.body === null || row === undefined) throw invalidResponse()
      try {
        await admit(row.sizeBytes)
      } catch (error) {
        await response.body.cancel()
        throw error
      }
      store.addSegment(row, nowMs())
      await segments.put(segmentKey(row.lineage, id), response.body, row)
      made.push(id)
    }
    throw new SandwireError('file_too_large', 'Cannot save the files: there are too many')
  }

  #row(id: SegmentId): SegmentRow {
    const row = this.#deps.store.segment(id)
    if (row === undefined) throw damaged(`segment ${id} is not known`)
    return row
  }

  /** The number of segments with the manifest, and the ends of all segments: id, size, and bytes with their length in front. */
  async #readEnds({ manifests, segments }: Version): Promise<Uint8Array<ArrayBuffer>> {
    const rows = [...new Set([...manifests, ...segments])].map((id) => this.#row(id))
    const writer = new ByteWriter()
    writer.number(manifests.length)
    for (let at = 0; at < rows.length; at += CONCURRENT_READS) {
      const batch = rows.slice(at, at + CONCURRENT_READS)
      const ends = await Promise.all(batch.map((row) => this.#readEnd(row)))
      for (const [index, { id, sizeBytes }] of batch.entries()) {
        writer.raw(Uint8Array.fromHex(id))
        writer.number(sizeBytes)
        writer.bytes(ends[index] ?? new Uint8Array(0))
      }
      if (writer.size > MAX_ENDS_BYTES) throw damaged('its tables are too large')
    }
    return writer.take()
  }

  /** The table of a segment. */
  async #readEnd({ id, lineage, sizeBytes, trailerBytes }: SegmentRow): Promise<Uint8Array> {
    const range = { start: sizeBytes - trailerBytes, end: sizeBytes }
    const body = await this.#deps.segments.get(segmentKey(lineage, id), range)
    if (body === undefined) throw damaged(`segment ${id} is missing`)
    const signal = AbortSignal.timeout(CALL_TIMEOUT_MS)
    const read = await readToEnd(body, trailerBytes, signal).catch((error: unknown) => {
      throw signal.aborted ? storeUnavailable('it does not respond') : error
    })
    if (read.kind !== 'whole') throw damaged(`segment ${id} cannot be read`)
    return new Uint8Array(read.bytes)
  }

  async #restoreSegment(
    target: SandboxAddress,
    { id, lineage, sha256: checksum }: SegmentRow,
    requestId: string,
  ): Promise<void> {
    const body = await this.#deps.segments.get(segmentKey(lineage, id))
    if (body === undefined) throw damaged(`segment ${id} is missing`)
    const response = await this.#fetch(target, requestId, {
      method: 'PUT',
      path: `/versions/segments/${id}`,
      stream: body,
      headers: { 'sandwire-sha256': checksum },
    })
    if (!response.ok) throw await readSandboxdError(response, AbortSignal.timeout(CALL_TIMEOUT_MS))
    await response.body?.cancel()
  }

  async #request(
    target: SandboxAddress,
    requestId: string,
    method: 'GET' | 'POST',
    path: string,
    options: { readonly ms?: number; readonly body?: unknown; readonly bytes?: Uint8Array<ArrayBuffer> } = {},
  ): Promise<unknown> {
    const { ms = CALL_TIMEOUT_MS, body, bytes } = options
    const late = (): Error => new SandwireError('timed_out', 'The sandbox does not respond in time')
    const caller: Caller = controlItself(requestId)
    return this.#deps.sandboxd(target.sandbox).request(target.address, caller, {
      method,
      path,
      deadline: { ms, late },
      ...(body === undefined ? {} : { body }),
      ...(bytes === undefined ? {} : { bytes }),
    })
  }

  #fetch(
    target: SandboxAddress,
    requestId: string,
    request: Parameters<SandboxdClient['fetch']>[2],
  ): Promise<Response> {
    return this.#deps.sandboxd(target.sandbox).fetch(target.address, controlItself(requestId), {
      ...request,
      signal: AbortSignal.timeout(BEGIN_TIMEOUT_MS),
    })
  }
}

function rowOf({ headers, ok }: Response, id: SegmentId, lineage: string): SegmentRow | undefined {
  const checksum = sha256.safeParse(headers.get('sandwire-sha256'))
  const sizeBytes = Number(headers.get('content-length'))
  const trailerBytes = Number(headers.get('sandwire-trailer-bytes'))
  const areValid = [sizeBytes, trailerBytes].every((size) => Number.isSafeInteger(size) && size > 0)
  if (!ok || !checksum.success || !areValid || trailerBytes > sizeBytes) return undefined
  return { id, lineage, sizeBytes, trailerBytes, sha256: checksum.data }
}

function damaged(problem: string): SandwireError {
  return new SandwireError('version_damaged', `Cannot restore the version: ${problem}. Restore an older one`)
}
