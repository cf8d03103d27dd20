import { readFile } from 'node:fs/promises'

/** Lines of a file that processes append to; none when it does not exist. */
export async function readLinesOf(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.split('\n').filter((line) => line !== '')
}
