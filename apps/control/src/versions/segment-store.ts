import { SandwireError } from '@sandwire/protocol'

export interface SegmentFacts {
  readonly sizeBytes: number
  /** Hex. */
  readonly sha256: string
}

/** Bytes from `start` up to, not including, `end`. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Stores immutable objects. Keys are path segments of lower-case letters and digits, joined by slashes. Every method may be
 * repeated, and throws `store_unavailable` when the store does not respond or fails.
 */
export interface SegmentStore {
  /** Stores an object whose content has this size and checksum. An object with the same content that exists is no error. */
  put(key: string, body: ReadableStream | Uint8Array<ArrayBuffer>, facts: SegmentFacts): Promise<void>
  /** The content, or a part of it; undefined when there is no such object. */
  get(key: string, range?: ByteRange): Promise<ReadableStream | undefined>
  /** Deleting nothing is not an error. */
  delete(key: string): Promise<void>
  /** Keys that begin with the prefix, at most 1,000, after `after` in the order of their bytes. */
  list(prefix: string, after?: string): Promise<readonly string[]>
}

export function storeUnavailable(problem: string, cause?: unknown): SandwireError {
  return new SandwireError('store_unavailable', `Cannot use the store of versions: ${problem}`, { cause })
}

/** Longest wait for a response without a body to send, in milliseconds. */
const RESPONSE_MS = 30_000
/** A slow connection, disk or sandbox takes at least 32 bytes per millisecond. */
const SLOWEST_BYTES_PER_MS = 32

/** Until a response begins to a request that sends this many bytes. A store that hangs must not look like a save in progress. */
export function responseTimeoutMs(sentBytes = 0): number {
  return RESPONSE_MS + sentBytes / SLOWEST_BYTES_PER_MS
}

/** Key of a segment. `lineage` is the sandbox that made it; forks refer to segments of their parent. */
export function segmentKey(lineage: string, segment: string): string {
  return `segments/${lineage}/${segment}`
}
