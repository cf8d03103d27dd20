import { closeSync, constants, lstatSync, openSync, realpathSync, statSync } from 'node:fs'
import { SandwireError, pathFromBytes } from '@sandwire/protocol'
import { OutputWriter } from '../attach/output-writer.ts'
import { WriteRefusedError } from './local-folder.ts'
import { joinLocalPath, type LocalPath } from './local-entries.ts'
import type { FileSink } from './receive-file.ts'
import { InterruptedError, OutputError } from '../errors/errors.ts'

/** Where `cp` writes a file that is given by name. */
export type CopyDestination =
  /** A new file, or one that is replaced. */
  | { readonly kind: 'file'; readonly base: LocalPath; readonly name: string }
  /** A device or pipe, which is written to and not replaced. */
  | { readonly kind: 'stream'; readonly at: LocalPath; readonly isPipe: boolean }

/** Symlinks in these folders, such as /dev/stdout, refer to open files, which are written to and never replaced. */
const SYSTEM_FOLDER = /^\/(dev|proc)(\/|$)/

const SLASH = 0x2f

/** Throws if the system does not allow writing through this symlink (`protected_symlinks`). */
function checkWritable(symlink: LocalPath): void {
  closeSync(openSync(symlink, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY))
}

function splitReal(at: LocalPath): { base: LocalPath; name: string } {
  const real = realpathSync(at, { encoding: 'buffer' })
  const slash = real.lastIndexOf(SLASH)
  return { base: real.subarray(0, slash), name: pathFromBytes(real.subarray(slash + 1)) }
}

/** Finds the destination for a name, following symlinks. Throws `WriteRefusedError`. */
export function findTarget(base: LocalPath, name: string): CopyDestination {
  const at = joinLocalPath(base, name)
  const linkStat = lstatSync(at, { throwIfNoEntry: false })
  if (linkStat === undefined) return { kind: 'file', base, name }
  const stat = statSync(at, { throwIfNoEntry: false })
  if (stat === undefined) throw new WriteRefusedError('it is a dangling symlink')
  if (stat.isDirectory()) throw new WriteRefusedError('it is a folder')
  const isSymlink = linkStat.isSymbolicLink()
  if (!stat.isFile() || (isSymlink && SYSTEM_FOLDER.test(base.toString()))) {
    if (stat.isSocket()) throw new WriteRefusedError('it is a socket')
    return { kind: 'stream', at, isPipe: stat.isFIFO() }
  }
  if (!isSymlink) return { kind: 'file', base, name }
  checkWritable(at)
  return { kind: 'file', ...splitReal(at) }
}

/** Interval of attempts to open a pipe without a reader. */
const RETRY_MS = 50
/** Non-blocking, so that signals are handled. */
const OPEN_FLAGS = constants.O_WRONLY | constants.O_TRUNC | constants.O_NOCTTY | constants.O_NONBLOCK

/** Writes to a stream that cannot be rewound; `target` is its name in errors. Writing throws `InterruptedError`. */
export function createStreamWriter(fd: number, target: string, signal: AbortSignal): FileSink {
  let errno: string | undefined
  const output = new OutputWriter(fd, (failed) => {
    errno = failed
  })
  signal.addEventListener('abort', () => output.close(), { once: true })
  return {
    write: async (bytes) => {
      await output.write(bytes)
      if (signal.aborted) throw new InterruptedError(String(signal.reason))
      // The reader closed the pipe.
      if (errno === 'EPIPE') throw new InterruptedError('SIGPIPE')
      if (errno !== undefined) throw new OutputError(target, errno)
    },
    restart: () => {
      throw new SandwireError('file_changed', 'Cannot resume: the file changed while it was copied')
    },
  }
}

/** ENXIO: no process has the pipe open for reading. */
function hasNoReader(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENXIO'
}

/** Opens a device or pipe for writing; waits for a reader of the pipe. Throws `InterruptedError`. */
export async function openStream(
  { at, isPipe }: Extract<CopyDestination, { kind: 'stream' }>,
  signal: AbortSignal,
): Promise<{ readonly fd: number } & Disposable> {
  for (;;) {
    if (signal.aborted) throw new InterruptedError(String(signal.reason))
    try {
      const fd = openSync(at, OPEN_FLAGS)
      return { fd, [Symbol.dispose]: () => closeSync(fd) }
    } catch (error) {
      if (!isPipe || !hasNoReader(error)) throw error
      await Bun.sleep(RETRY_MS)
    }
  }
}
