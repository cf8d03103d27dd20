import { concatBytes } from '@sandwire/bytes'

/** The outcome of reading a body. */
export type Read =
  | { readonly kind: 'whole'; readonly bytes: ArrayBuffer }
  /** Larger than allowed. */
  | { readonly kind: 'tooLarge' }
  /** Incomplete or invalid framing. */
  | { readonly kind: 'broken' }

/**
 * Reads a body and buffers at most `maxBytes`. Aborting the signal cancels it and throws its reason; a peer that might never
 * end must be read with one.
 */
export async function readToEnd(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<Read> {
  if (body === null) return { kind: 'whole', bytes: new ArrayBuffer(0) }
  const reader = body.getReader()
  // A stream that has ended or failed rejects the cancelation.
  const end = (): void => void reader.cancel(signal?.reason).catch(() => undefined)
  signal?.addEventListener('abort', end, { once: true })
  try {
    if (signal?.aborted === true) end()
    const read = await readAll(reader, maxBytes)
    // A canceled stream looks like a complete one.
    signal?.throwIfAborted()
    if (read.kind !== 'whole') end()
    return read
  } finally {
    signal?.removeEventListener('abort', end)
  }
}

async function readAll(reader: ReadableStreamDefaultReader<Uint8Array>, maxBytes: number): Promise<Read> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      length += read.value.byteLength
      if (length > maxBytes) return { kind: 'tooLarge' }
      chunks.push(read.value)
    }
  } catch {
    // The peer disconnected or sent an invalid body.
    return { kind: 'broken' }
  }
  return { kind: 'whole', bytes: concatBytes(chunks).buffer }
}

/** The bytes of a response; undefined if there are more than `maxBytes` or it is incomplete. */
export async function readBoundedBytes(
  response: Response,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<ArrayBuffer | undefined> {
  const read = await readToEnd(response.body, maxBytes, signal)
  return read.kind === 'whole' ? read.bytes : undefined
}

/** The text of a response; undefined as for `readBoundedBytes`. */
export async function readBounded(
  response: Response,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const bytes = await readBoundedBytes(response, maxBytes, signal)
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes)
}

/** The JSON of a response; undefined if it is not JSON, too large or incomplete. */
export async function readBoundedJson(
  response: Response,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<unknown> {
  const text = await readBounded(response, maxBytes, signal)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON.
    return undefined
  }
}
