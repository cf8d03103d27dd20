import { readFile } from 'node:fs/promises'

/** Longer lines are split, so that a stream without newlines stays bounded. */
const MAX_LINE_CHARS = 1024 * 1024

/** Lines of a UTF-8 stream without newlines, including an unterminated last one. */
export async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true })
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
    if (rest.length <= MAX_LINE_CHARS) continue
    yield rest
    rest = ''
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}

/** Lines of a file that processes append to; none when it does not exist. */
export async function readFileLines(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.split('\n').filter((line) => line !== '')
}
