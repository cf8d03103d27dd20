import { concatBytes } from '@sandwire/bytes'

/** What came of reading a body to its end. */
export type Read =
  | { readonly is: 'whole'; readonly bytes: ArrayBuffer }
  /** There is more than was allowed. */
  | { readonly is: 'tooLarge' }
  /** It broke off, or was not framed as it has to be. */
  | { readonly is: 'broken' }

/**
 * Reads a body to its end and holds nothing larger than `maxBytes`. A signal ends it and throws its reason: whoever may go on
 * for ever is read with one.
 */
export async function readToEnd(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<Read> {
  if (body === null) return { is: 'whole', bytes: new ArrayBuffer(0) }
  const reader = body.getReader()
  // What has ended or is broken already cannot be canceled, and need not be.
  const end = (): void => void reader.cancel(signal?.reason).catch(() => undefined)
  signal?.addEventListener('abort', end, { once: true })
  try {
    if (signal?.aborted === true) end()
    const read = await readAll(reader, maxBytes)
    // What was ended looks as if it were whole.
    signal?.throwIfAborted()
    if (read.is !== 'whole') end()
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
      if (length > maxBytes) return { is: 'tooLarge' }
      chunks.push(read.value)
    }
  } catch {
    // The other side went away in the middle, or said what is no body.
    return { is: 'broken' }
  }
  return { is: 'whole', bytes: concatBytes(chunks).buffer }
}

/** The bytes of an answer, or undefined when there are more than `maxBytes` or it breaks off. */
export async function readBoundedBytes(
  response: Response,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<ArrayBuffer | undefined> {
  const read = await readToEnd(response.body, maxBytes, signal)
  return read.is === 'whole' ? read.bytes : undefined
}

/** The text of an answer; undefined as for `readBoundedBytes`. */
export async function readBounded(
  response: Response,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const bytes = await readBoundedBytes(response, maxBytes, signal)
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes)
}

/** The JSON of an answer; undefined when it is none, too large or breaks off. */
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
    // Not JSON: told by the undefined.
    return undefined
  }
}
