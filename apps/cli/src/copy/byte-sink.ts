import { closeSync, constants, openSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { OutputWriter } from '../attach/output-writer.ts'
import { Interrupted } from '../errors/interrupted.ts'
import { Unwritable } from '../errors/unwritable.ts'
import type { NamedTarget } from './named-target.ts'
import type { FileSink } from './receive-file.ts'

/** How often a pipe that nobody reads yet is tried. */
const AGAIN_MS = 50
/** Nothing here waits in the kernel, where no signal would be noticed. */
const WRITE_INTO = constants.O_WRONLY | constants.O_TRUNC | constants.O_NOCTTY | constants.O_NONBLOCK

/** Takes bytes that cannot be taken back; `where` is how it is called when it takes no more. Writing throws `Interrupted`. */
export function byteSink(fd: number, where: string, signal: AbortSignal): FileSink {
  let broken: string | undefined
  const output = new OutputWriter(fd, (errno) => {
    broken = errno
  })
  signal.addEventListener('abort', () => output.giveUp(), { once: true })
  return {
    write: async (bytes) => {
      await output.write(bytes)
      if (signal.aborted) throw new Interrupted(String(signal.reason))
      // Whoever reads has seen enough.
      if (broken === 'EPIPE') throw new Interrupted('SIGPIPE')
      if (broken !== undefined) throw new Unwritable(where, broken)
    },
    restart: () => {
      throw new SandwireError('file_changed', 'Cannot go on: the file changed while it was copied')
    },
  }
}

/** A pipe has a reader from the moment on that somebody opens it. */
function hasNoReader(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENXIO'
}

/** Opens a device or a pipe to be written into; waits for whoever reads the pipe. Throws `Interrupted`. */
export async function openSink(
  { at, isPipe }: Extract<NamedTarget, { is: 'sink' }>,
  signal: AbortSignal,
): Promise<{ readonly fd: number } & Disposable> {
  for (;;) {
    if (signal.aborted) throw new Interrupted(String(signal.reason))
    try {
      const fd = openSync(at, WRITE_INTO)
      return { fd, [Symbol.dispose]: () => closeSync(fd) }
    } catch (error) {
      if (!isPipe || !hasNoReader(error)) throw error
      await Bun.sleep(AGAIN_MS)
    }
  }
}
