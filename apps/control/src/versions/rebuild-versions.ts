import {
  type Decompression,
  FolderIndex,
  readManifest,
  readTrailer,
  type SegmentId,
  trailerSize,
} from '@sandwire/version-format'
import { SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { readToEnd } from '../http/read-bounded.ts'
import { segmentKey, type SegmentStore, storeUnavailable } from './segment-store.ts'
import type { SegmentRow, Version } from './version-store.ts'

/** A segment with its manifest; larger ones are left out. */
const MAX_SEGMENT_BYTES = 24 * 1024 * 1024
const MAX_TRAILER_BYTES = 16 * 1024 * 1024
/** Of all manifests. */
const MAX_MANIFEST_BYTES = 32 * 1024 * 1024
/** Manifests of one version; saves make far fewer. */
const MAX_CHAIN = 1_000
const READ_TIMEOUT_MS = 5 * 60 * 1000
/** Of the manifests that are parsed for all versions: each version needs those from its base on. */
const MAX_PARSED_BYTES = 1024 * 1024 * 1024

/** What the last segment of a version says about it. */
const recordBody = z.object({
  sandbox: z.string(),
  save: z.string().regex(/^[0-9a-f]{28}$/),
  parent: z.string().nullable(),
  kind: z.enum(['automatic', 'checkpoint']),
  name: z.string().max(63).nullable(),
  savedMs: z.int().min(0),
})
type VersionRecord = z.infer<typeof recordBody>

/** The last segment of a version. */
interface Ending {
  readonly id: SegmentId
  readonly record: VersionRecord
  readonly manifest: Uint8Array
}

/** The versions of a sandbox as its segments in a store describe them, oldest first, with all segments that they need. */
export interface FoundVersions {
  readonly versions: readonly Omit<Version, 'number'>[]
  readonly segments: readonly SegmentRow[]
}

/**
 * Reads the list of versions from the store alone. `lineages` are the sandboxes whose segments it may need: what a segment says
 * is not trusted, because the sandbox made it. Every segment is read whole, because its checksum is not stored elsewhere.
 * A version of which anything is missing or damaged is left out.
 */
export async function findVersions(
  store: SegmentStore,
  compression: Decompression,
  {
    sandbox,
    lineages,
    pause,
  }: {
    readonly sandbox: string
    readonly lineages: readonly string[]
    /** Called between two versions, so that control does other things meanwhile. */
    readonly pause: () => Promise<void>
  },
): Promise<FoundVersions> {
  const rows = new Map<SegmentId, SegmentRow>()
  const endings = new Map<string, Ending>()
  let manifestBytes = 0
  for (const lineage of new Set([sandbox, ...lineages]))
    for await (const { row, ending } of readLineage(store, compression, lineage)) {
      rows.set(row.id, row)
      if (ending === undefined) continue
      manifestBytes += ending.manifest.byteLength
      if (manifestBytes > MAX_MANIFEST_BYTES) throw tooManyFiles()
      endings.set(ending.record.save, ending)
    }
  const versions: Omit<Version, 'number'>[] = []
  const own = endings.values().filter(({ record }) => record.sandbox === sandbox)
  let parsedBytes = 0
  for (const ending of [...own].toSorted((a, b) => a.record.savedMs - b.record.savedMs)) {
    await pause()
    const chain = chainOf(ending, endings)
    parsedBytes += chain?.reduce((sum, { manifest }) => sum + manifest.byteLength, 0) ?? 0
    if (parsedBytes > MAX_PARSED_BYTES) throw tooManyFiles()
    const version = chain === undefined ? undefined : toVersion(ending, chain)
    if (version?.segments.every((id) => rows.has(id)) === true) versions.push(version)
  }
  const needed = new Set(versions.flatMap(({ manifests, segments }) => [...manifests, ...segments]))
  return { versions, segments: [...rows.values()].filter(({ id }) => needed.has(id)) }
}

async function* readLineage(
  store: SegmentStore,
  compression: Decompression,
  lineage: string,
): AsyncGenerator<{ readonly row: SegmentRow; readonly ending: Ending | undefined }, void, void> {
  let after: string | undefined
  do {
    const keys = await store.list(segmentKey(lineage, ''), after)
    for (const key of keys) {
      const id = key.split('/').at(-1) ?? ''
      const bytes = await readSegment(store, key)
      const found = bytes === undefined ? undefined : await parseSegment(id, lineage, bytes, compression)
      if (found !== undefined) yield found
    }
    after = keys.at(-1)
  } while (after !== undefined)
}

async function readSegment(store: SegmentStore, key: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const body = await store.get(key)
  if (body === undefined) return undefined
  const read = await readToEnd(body, MAX_SEGMENT_BYTES, AbortSignal.timeout(READ_TIMEOUT_MS))
  if (read.kind === 'broken') throw storeUnavailable('a segment could not be read')
  return read.kind === 'whole' ? new Uint8Array(read.bytes) : undefined
}

/** Undefined for what is not a segment. */
async function parseSegment(
  id: SegmentId,
  lineage: string,
  bytes: Uint8Array<ArrayBuffer>,
  compression: Decompression,
): Promise<{ readonly row: SegmentRow; readonly ending: Ending | undefined } | undefined> {
  try {
    const trailerBytes = trailerSize(bytes)
    const { manifest, record } = readTrailer(bytes, bytes.byteLength, compression, MAX_TRAILER_BYTES)
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
    const row = { id, lineage, sizeBytes: bytes.byteLength, trailerBytes, sha256: digest.toHex() }
    if (manifest === undefined || record === undefined) return { row, ending: undefined }
    const parsed = recordBody.safeParse(JSON.parse(new TextDecoder().decode(record)))
    return { row, ending: parsed.success ? { id, record: parsed.data, manifest } : undefined }
  } catch {
    // Damaged, or not ours: what needs it is left out.
    return undefined
  }
}

function tooManyFiles(): SandwireError {
  return new SandwireError('file_too_large', 'Cannot rebuild the list of versions: they have too many files')
}

/** The endings from the base of a version to its own; undefined: they are damaged. */
function chainOf(ending: Ending, endings: ReadonlyMap<string, Ending>): readonly Ending[] | undefined {
  const chain: Ending[] = []
  try {
    for (let at: Ending | undefined = ending; at !== undefined; at = endings.get(at.record.parent ?? '')) {
      // A hostile chain may lead back to itself.
      if (chain.length > MAX_CHAIN) return undefined
      chain.unshift(at)
      if (readManifest(at.manifest).isBase) break
    }
    return chain
  } catch {
    // A manifest is damaged.
    return undefined
  }
}

function toVersion(ending: Ending, chain: readonly Ending[]): Omit<Version, 'number'> | undefined {
  try {
    const index = new FolderIndex(chain.map(({ manifest }) => manifest))
    const { save, savedMs, kind, name } = ending.record
    return {
      save,
      createdMs: savedMs,
      kind,
      name: name ?? undefined,
      // Not known, except for those that had all the time they needed.
      isFuzzy: kind === 'automatic',
      unreadable: 0,
      manifests: chain.map(({ id }) => id),
      segments: [...index.segments],
    }
  } catch {
    // Its base is missing, or a manifest is damaged.
    return undefined
  }
}
