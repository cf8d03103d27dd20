import { closeFd, pipe2, setNonBlocking, setPipeBytes } from '../linux/libc.ts'

/** Larger than the default 64 KiB, so that bulk output needs fewer context switches. */
const STDOUT_PIPE_BYTES = 256 * 1024

export interface Pipes {
  /** Our ends. */
  readonly stdin: number
  readonly stdout: number
  readonly stderr: number
  /** The child's ends, in the order of its descriptors. */
  readonly child: readonly [number, number, number]
}

/** Opens the three pipes of a process, all closed on exec; undefined when descriptors have run out. */
export function openPipes(): Pipes | undefined {
  const opened: number[] = []
  for (let count = 0; count < 3; count += 1) {
    const fds = new Int32Array(2)
    if (pipe2(fds) < 0) {
      for (const fd of opened) closeFd(fd)
      return undefined
    }
    opened.push(...fds)
  }
  const [childStdin = -1, stdin = -1, stdout = -1, childStdout = -1, stderr = -1, childStderr = -1] = opened
  // Only our end: the flag belongs to the open file, and programs expect blocking reads.
  setNonBlocking(stdin)
  // May be refused beyond the user's limit; the default size is only slower.
  setPipeBytes(stdout, STDOUT_PIPE_BYTES)
  return { stdin, stdout, stderr, child: [childStdin, childStdout, childStderr] }
}
