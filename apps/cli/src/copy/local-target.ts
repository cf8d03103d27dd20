import { closeSync, constants, lstatSync, openSync, realpathSync, statSync } from 'node:fs'
import { SandwireError, pathFromBytes } from '@sandwire/protocol'
import { OutputWriter } from '../attach/output-writer.ts'
import { WriteRefusedError } from './local-folder.ts'
import { joinLocalPath, type LocalPath } from './local-entries.ts'
import type { FileSink } from './receive-file.ts'
import { Interrupted, OutputError } from '../errors/errors.ts'

/** Where a file goes that somebody named, as `cp` has it. */
export type NamedTarget =
  /** A name in a folder: a new file, or one whose place it takes. */
  | { readonly is: 'file'; readonly base: LocalPath; readonly name: string }
  /** A device or a pipe, which stays what it is and is written into. */
  | { readonly is: 'sink'; readonly at: LocalPath; readonly isPipe: boolean }

/** Links in there stand for what processes have open: what is behind them is written, and never replaced. */
const OF_SYSTEM = /^\/(dev|proc)(\/|$)/

const SLASH = 0x2f

/** Throws the error of the system where it does not let this link be written through, as in a folder of everybody's. */
function checkWritable(link: LocalPath): void {
  closeSync(openSync(link, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY))
}

function splitReal(at: LocalPath): { base: LocalPath; name: string } {
  const real = realpathSync(at, { encoding: 'buffer' })
  const slash = real.lastIndexOf(SLASH)
  return { base: real.subarray(0, slash), name: pathFromBytes(real.subarray(slash + 1)) }
}

/** Looks at what has the name now, and follows links: whoever types a name means what is behind it. Throws `WriteRefusedError`. */
export function findTarget(base: LocalPath, name: string): NamedTarget {
  const at = joinLocalPath(base, name)
  const own = lstatSync(at, { throwIfNoEntry: false })
  if (own === undefined) return { is: 'file', base, name }
  const stat = statSync(at, { throwIfNoEntry: false })
  if (stat === undefined) throw new WriteRefusedError('it is a link to nothing')
  if (stat.isDirectory()) throw new WriteRefusedError('a folder is in its place')
  const isLink = own.isSymbolicLink()
  if (!stat.isFile() || (isLink && OF_SYSTEM.test(base.toString()))) {
    if (stat.isSocket()) throw new WriteRefusedError('a socket is in its place')
    return { is: 'sink', at, isPipe: stat.isFIFO() }
  }
  if (!isLink) return { is: 'file', base, name }
  checkWritable(at)
  return { is: 'file', ...splitReal(at) }
}

/** How often a pipe that nobody reads yet is tried. */
const AGAIN_MS = 50
/** Nothing here waits in the kernel, where no signal would be noticed. */
const WRITE_INTO = constants.O_WRONLY | constants.O_TRUNC | constants.O_NOCTTY | constants.O_NONBLOCK

/** Takes bytes that cannot be taken back; `where` is how it is called when it takes no more. Writing throws `Interrupted`. */
export function createByteSink(fd: number, where: string, signal: AbortSignal): FileSink {
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
      if (broken !== undefined) throw new OutputError(where, broken)
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
