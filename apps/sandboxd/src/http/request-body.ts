import { SandwireError } from '@sandwire/protocol'
import { refuse } from './respond.ts'

/** Largest JSON body, unless a route allows more. */
const MAX_BODY_BYTES = 256 * 1024

/** The JSON body of a request; throws `frame_too_large` and `bad_request`. Holds at most `maxBytes` of it. */
export async function readJson(request: Request, maxBytes = MAX_BODY_BYTES): Promise<unknown> {
  return parseJson(await readBytes(request, maxBytes))
}

/** Throws `bad_request`. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new SandwireError('bad_request', 'Cannot read the body: not JSON')
  }
}

/** The body of a request; throws `frame_too_large`. */
export async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const tooLarge = `Cannot read the body: more than ${maxBytes} bytes`
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) refuse('frame_too_large', tooLarge)
  const chunks: Uint8Array[] = []
  let size = 0
  // A chunked body does not announce its length.
  for await (const chunk of request.body?.values({ preventCancel: true }) ?? []) {
    size += chunk.byteLength
    if (size > maxBytes) refuse('frame_too_large', tooLarge)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** How much of an unwanted body is read, and for how long. */
export interface DrainLimits {
  readonly maxBytes: number
  readonly timeMs: number
}

const DRAIN_LIMITS: DrainLimits = { maxBytes: 64 * 1024 * 1024, timeMs: 5_000 }

/**
 * Reads and discards the rest of a refused body, within limits. If the connection closed while the client was still sending,
 * the client would not get the response that says why.
 */
export async function drainBody({ body }: Request, limits = DRAIN_LIMITS): Promise<void> {
  if (body === null || body.locked) return
  const reader = body.getReader()
  const timer = setTimeout(() => void reader.cancel().catch(() => undefined), limits.timeMs)
  try {
    for (let left = limits.maxBytes; left > 0;) {
      const { done, value } = await reader.read()
      if (done) return
      left -= value.byteLength
    }
  } catch {
    // The client has disconnected.
  } finally {
    clearTimeout(timer)
    reader.releaseLock()
  }
}
