import { z } from 'zod'
import { readToEnd } from '../http/read-bounded.ts'
import { type SegmentStore, storeUnavailable } from './segment-store.ts'
import type { SegmentRow } from './version-store.ts'

/** A record has about 200 bytes for each segment. */
const MAX_RECORD_BYTES = 32 * 1024 * 1024
const READ_TIMEOUT_MS = 60_000

const recordBody = z.array(
  z.object({
    id: z.string().regex(/^[0-9a-f]{32}$/),
    lineage: z.string().min(1),
    sizeBytes: z.int().min(0),
    trailerBytes: z.int().min(0),
    sha256: z.string(),
  }),
)

/** Segments that a fork may need. */
export interface ForkRecord {
  readonly fork: string
  readonly segments: readonly SegmentRow[]
}

function forkKey(parent: string, fork: string): string {
  return `forks/${parent}/${fork}`
}

/** Records in the store what a fork may need of its parent, so that an older database of the parent does not lose it. */
export async function storeFork(
  store: SegmentStore,
  parent: string,
  { fork, segments }: ForkRecord,
): Promise<void> {
  const bytes = new Uint8Array(new TextEncoder().encode(JSON.stringify(segments)))
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  await store.put(forkKey(parent, fork), bytes, { sizeBytes: bytes.byteLength, sha256: digest.toHex() })
}

export function deleteFork(store: SegmentStore, parent: string, fork: string): Promise<void> {
  return store.delete(forkKey(parent, fork))
}

/** The recorded forks of a sandbox, without those that are known. Throws `store_unavailable`, also for a damaged record. */
export async function* readForks(
  store: SegmentStore,
  parent: string,
  known: ReadonlySet<string>,
): AsyncGenerator<ForkRecord, void, void> {
  let after: string | undefined
  do {
    const keys = await store.list(forkKey(parent, ''), after)
    for (const key of keys) {
      const fork = key.slice(forkKey(parent, '').length)
      if (known.has(fork)) continue
      const segments = await readRecord(store, key)
      if (segments !== undefined) yield { fork, segments }
    }
    after = keys.at(-1)
  } while (after !== undefined)
}

/** Undefined: it was deleted meanwhile. */
async function readRecord(store: SegmentStore, key: string): Promise<readonly SegmentRow[] | undefined> {
  const body = await store.get(key)
  if (body === undefined) return undefined
  const read = await readToEnd(body, MAX_RECORD_BYTES, AbortSignal.timeout(READ_TIMEOUT_MS))
  if (read.kind !== 'whole') throw storeUnavailable('the record of a fork could not be read')
  try {
    return recordBody.parse(JSON.parse(new TextDecoder().decode(read.bytes)))
  } catch (cause) {
    throw storeUnavailable('the record of a fork is damaged', cause)
  }
}
