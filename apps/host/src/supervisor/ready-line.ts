import { readLines } from '../read-lines.ts'

function isReady(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && 'type' in value && value.type === 'ready'
  } catch {
    // Something else was printed first.
    return false
  }
}

/** Calls back at the line in which sandboxd says that it listens, and reads on, so that nobody blocks on writing more. */
export async function watchForReady(stdout: ReadableStream<Uint8Array>, onReady: () => void): Promise<void> {
  for await (const line of readLines(stdout)) if (isReady(line)) onReady()
}
