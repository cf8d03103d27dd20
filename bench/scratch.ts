import { createHash } from 'node:crypto'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A file to transfer, and the expected result. */
export interface Workload {
  readonly file: string
  readonly bytes: number
  readonly sha256: string
  /** Size after the terminal has made two bytes of each line end. */
  readonly terminalBytes: number
}

/** A temporary directory of this run. */
export interface Scratch extends AsyncDisposable {
  readonly directory: string
  /** A file of numbered lines, at least `bytes` long; made once per size. */
  readonly workload: (bytes: number) => Promise<Workload>
}

/** Lines of 74 bytes, similar to a listing or a log. */
function makeLines(bytes: number): { text: Buffer; lines: number } {
  const lines = Math.ceil(bytes / 74)
  const text = Buffer.alloc(lines * 74)
  for (let line = 0; line < lines; line += 1) {
    text.write(
      `${String(line).padStart(10, '0')} the quick brown fox jumps over the lazy dog 0123456789 abcdefg\n`,
      line * 74,
      'latin1',
    )
  }
  return { text, lines }
}

export async function openScratch(): Promise<Scratch> {
  const directory = await mkdtemp(join(tmpdir(), 'sandwire-bench-'))
  await chmod(directory, 0o700)
  const workloads = new Map<number, Workload>()
  return {
    directory,
    workload: async (bytes) => {
      const known = workloads.get(bytes)
      if (known !== undefined) return known
      const { text, lines } = makeLines(bytes)
      const file = join(directory, `lines-${bytes}`)
      await writeFile(file, text)
      const sha256 = createHash('sha256').update(text).digest('hex')
      const workload = { file, bytes: text.length, sha256, terminalBytes: text.length + lines }
      workloads.set(bytes, workload)
      return workload
    },
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}
