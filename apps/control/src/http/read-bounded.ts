/**
 * The bytes of a body, or undefined when there are more than `maxBytes` or it breaks off. Nothing larger is held. A signal ends
 * it and throws its reason: whoever may go on for ever is read with one.
 */
export async function readBoundedBytes(
  response: Response,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<ArrayBuffer | undefined> {
  const body: ReadableStream<Uint8Array> | null = response.body
  if (body === null) return new ArrayBuffer(0)
  const reader = body.getReader()
  // What has ended or is broken already cannot be cancelled, and need not be.
  const end = (): void => void reader.cancel(signal?.reason).catch(() => undefined)
  signal?.addEventListener('abort', end, { once: true })
  try {
    if (signal?.aborted === true) end()
    const bytes = await readAll(reader, maxBytes)
    // What was ended looks as if it were whole.
    signal?.throwIfAborted()
    if (bytes === undefined) end()
    return bytes
  } finally {
    signal?.removeEventListener('abort', end)
  }
}

async function readAll(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  maxBytes: number,
): Promise<ArrayBuffer | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      length += read.value.byteLength
      if (length > maxBytes) return undefined
      chunks.push(read.value)
    }
  } catch {
    // The other side went away in the middle: told by the undefined.
    return undefined
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  return bytes.buffer
}

/** The text of a body; undefined as for `readBoundedBytes`. */
export async function readBounded(
  response: Response,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const bytes = await readBoundedBytes(response, maxBytes, signal)
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes)
}

/** The JSON of a body; undefined when it is none, too large or breaks off. */
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
