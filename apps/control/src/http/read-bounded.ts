/** The text of a body, or undefined when it is larger than `maxBytes` or breaks off. Nothing larger is held. */
export async function readBounded(response: Response, maxBytes: number): Promise<string | undefined> {
  if (response.body === null) return ''
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let read = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return text + decoder.decode()
      read += value.byteLength
      if (read > maxBytes) {
        await reader.cancel()
        return undefined
      }
      text += decoder.decode(value, { stream: true })
    }
  } catch {
    // The other side went away in the middle: told by the undefined.
    return undefined
  }
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
