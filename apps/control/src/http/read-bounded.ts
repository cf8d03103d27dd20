/** The bytes of a body, or undefined when there are more than `maxBytes` or it breaks off. Nothing larger is held. */
export async function readBoundedBytes(
  response: Response,
  maxBytes: number,
): Promise<ArrayBuffer | undefined> {
  const body: ReadableStream<Uint8Array> | null = response.body
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of body ?? []) {
      length += chunk.byteLength
      if (length > maxBytes) return undefined
      chunks.push(chunk)
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
export async function readBounded(response: Response, maxBytes: number): Promise<string | undefined> {
  const bytes = await readBoundedBytes(response, maxBytes)
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes)
}

/** The JSON of a body; undefined when it is none, too large or breaks off. */
export async function readBoundedJson(response: Response, maxBytes: number): Promise<unknown> {
  const text = await readBounded(response, maxBytes)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON: told by the undefined.
    return undefined
  }
}
