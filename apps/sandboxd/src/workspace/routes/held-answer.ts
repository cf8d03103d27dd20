import { respondJson } from '../../http/respond.ts'
import type { GiveBack, TextRoom } from '../text-room.ts'

/** Bytes of an answer that are handed over at a time. */
const PART_BYTES = 256 * 1024
/** Answers that take no room worth counting. */
const SMALL_BYTES = 64 * 1024
/** What a listing takes while it is made, when nobody knows yet how long it is: as much as the longest. */
const LISTING_BYTES = 24 * 1024 * 1024

export interface Holding {
  readonly texts: TextRoom
  /** Says that nobody waits for it any more. */
  readonly signal: AbortSignal
}

/** JSON in parts, which takes its room until the last of it is handed over, or nobody is there any more to hand it to. */
export function respondParts(
  parts: Iterator<Uint8Array, void>,
  { sizeBytes, headers = {} }: { readonly sizeBytes: number; readonly headers?: Record<string, string> },
  { giveBack, signal }: { readonly giveBack: GiveBack; readonly signal: AbortSignal },
): Response {
  if (signal.aborted) giveBack()
  else signal.addEventListener('abort', giveBack, { once: true })
  return new Response(streamOf(parts, giveBack), {
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'sandwire-size': String(sizeBytes),
      ...headers,
    },
  })
}

function streamOf(parts: Iterator<Uint8Array, void>, onEnd: () => void): ReadableStream<Uint8Array> {
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

/** Makes a listing when there is room for it, and answers with it. */
export async function respondListing(
  make: () => Promise<object>,
  { texts, signal }: Holding,
): Promise<Response> {
  const giveBack = await texts.take(LISTING_BYTES, signal)
  try {
    const listing = await make()
    const bytes = Buffer.from(JSON.stringify(listing))
    if (bytes.byteLength > SMALL_BYTES)
      return respondParts(cut(bytes), { sizeBytes: bytes.byteLength }, { giveBack, signal })
    giveBack()
    return respondJson(listing)
  } catch (error) {
    giveBack()
    throw error
  }
}

function* cut(bytes: Uint8Array): Generator<Uint8Array, void, void> {
  for (let at = 0; at < bytes.byteLength; at += PART_BYTES) yield bytes.subarray(at, at + PART_BYTES)
}
