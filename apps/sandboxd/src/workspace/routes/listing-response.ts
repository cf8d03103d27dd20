import { respondJson } from '../../http/respond.ts'
import type { Release, Semaphore, SemaphoreLimits } from '../semaphore.ts'

/** Bytes that are sent at a time. */
const PART_BYTES = 256 * 1024
/** Responses up to this size do not hold memory while they are sent. */
const UNCOUNTED_BYTES = 64 * 1024
/** Reserved for a listing before its size is known: as much as the longest one needs. */
const LISTING_BYTES = 24 * 1024 * 1024

/** Memory for responses that are held as a whole: a few of the largest at a time, a part of the smallest sandbox. */
export const RESPONSE_MEMORY: SemaphoreLimits = {
  capacity: 96 * 1024 * 1024,
  maxWaiting: 256,
  waitMs: 10_000,
  refusal: 'Cannot send the text: too many large texts are being sent',
  retryAfterMs: 1_000,
}

export interface MemoryBudget {
  readonly memory: Semaphore
  /** Aborted when the client has disconnected. */
  readonly signal: AbortSignal
}

/** Responds with JSON in parts. The memory is released after the last part, or when the client disconnects. */
export function respondParts(
  parts: Iterator<Uint8Array, void>,
  { sizeBytes, headers = {} }: { readonly sizeBytes: number; readonly headers?: Record<string, string> },
  { release, signal }: { readonly release: Release; readonly signal: AbortSignal },
): Response {
  if (signal.aborted) release()
  else signal.addEventListener('abort', release, { once: true })
  return new Response(toStream(parts, release), {
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'sandwire-size': String(sizeBytes),
      ...headers,
    },
  })
}

function toStream(parts: Iterator<Uint8Array, void>, onEnd: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const { done, value } = parts.next()
        if (done !== true) {
          controller.enqueue(value)
          return
        }
        controller.close()
        onEnd()
      },
      cancel: onEnd,
    },
    { highWaterMark: 0 },
  )
}

/** Creates a listing once there is memory for it, and responds with it. */
export async function respondListing(
  create: () => Promise<object>,
  { memory, signal }: MemoryBudget,
): Promise<Response> {
  const release = await memory.acquire(LISTING_BYTES, signal)
  try {
    const listing = await create()
    const bytes = Buffer.from(JSON.stringify(listing))
    if (bytes.byteLength > UNCOUNTED_BYTES)
      return respondParts(split(bytes), { sizeBytes: bytes.byteLength }, { release, signal })
    release()
    return respondJson(listing)
  } catch (error) {
    release()
    throw error
  }
}

function* split(bytes: Uint8Array): Generator<Uint8Array, void, void> {
  for (let at = 0; at < bytes.byteLength; at += PART_BYTES) yield bytes.subarray(at, at + PART_BYTES)
}
