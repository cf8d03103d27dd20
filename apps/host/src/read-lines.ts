/** Longer lines are split, so that a stream without newlines stays bounded. */
const MAX_LINE_CHARS = 64 * 1024

/** Lines of a UTF-8 stream without newlines, including an unterminated last one. */
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
