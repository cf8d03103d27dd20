/** A line longer than this is given in pieces, so that a stream without line ends stays bounded. */
const MAX_LINE_CHARS = 64 * 1024

/** The lines of a stream as UTF-8, without their ends; the last one too when nothing ends it. */
export async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
    if (rest.length <= MAX_LINE_CHARS) continue
    yield rest
    rest = ''
  }
  if (rest !== '') yield rest
}
