import { dlopen, FFIType, ptr } from 'bun:ffi'
import { closeSync, readSync, writeSync } from 'node:fs'

const O_RDWR = 0o2
const O_NOCTTY = 0o400
const O_CLOEXEC = 0o2000000
const TIOCSPTLCK = 0x40045431
const TIOCGPTPEER = 0x5441

const { symbols: libc } = dlopen('libc.so.6', {
  pipe2: { args: ['ptr', 'i32'], returns: 'i32' },
  posix_openpt: { args: ['i32'], returns: 'i32' },
  ioctl: { args: ['i32', FFIType.u64, FFIType.u64], returns: 'i32' },
})

/** Two descriptors of a channel, and how to read it to its end with blocking reads. */
interface Channel {
  readonly readFd: number
  readonly childFd: number
}

function openPipe(): Channel {
  const fds = new Int32Array(2)
  if (libc.pipe2(ptr(fds), O_CLOEXEC) !== 0) throw new Error('Cannot open a pipe')
  return { readFd: fds[0] ?? -1, childFd: fds[1] ?? -1 }
}

function openTerminal(): Channel {
  const readFd = libc.posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)
  const unlocked = new Int32Array(1)
  libc.ioctl(readFd, TIOCSPTLCK, ptr(unlocked))
  const childFd = libc.ioctl(readFd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)
  if (readFd < 0 || childFd < 0) throw new Error('Cannot open a terminal')
  return { readFd, childFd }
}

/** Reads until the other side is closed: end of file on a pipe, EIO on a terminal. */
function readToEnd(fd: number): number {
  const buffer = new Uint8Array(256 * 1024)
  let total = 0
  for (;;) {
    let count: number
    try {
      count = readSync(fd, buffer)
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EIO') return total
      throw error
    }
    if (count === 0) return total
    total += count
  }
}

/** Runs a command on a pipe or terminal and reads it with blocking reads, like a C program: the limit of the machine. */
export async function readRaw(argv: readonly string[], mode: 'pipe' | 'pty'): Promise<number> {
  const { readFd, childFd } = mode === 'pipe' ? openPipe() : openTerminal()
  const child = Bun.spawn([...argv], { stdio: ['ignore', childFd, 'ignore'] })
  closeSync(childFd)
  const total = readToEnd(readFd)
  closeSync(readFd)
  await child.exited
  return total
}

/** Times one byte through `cat` and back with blocking calls, in milliseconds. */
export async function echoRaw(mode: 'pipe' | 'pty', count: number): Promise<number[]> {
  const [input, output] = mode === 'pipe' ? [openPipe(), openPipe()] : [undefined, openTerminal()]
  const stdin = input?.readFd ?? output.childFd
  const argv = mode === 'pipe' ? ['cat'] : ['sh', '-c', 'stty raw -echo; printf r; exec cat']
  const child = Bun.spawn(argv, { stdio: [stdin, output.childFd, 'ignore'] })
  const writeFd = input?.childFd ?? output.readFd
  closeSync(output.childFd)
  if (input !== undefined) closeSync(input.readFd)
  const byte = new Uint8Array([0x78])
  if (mode === 'pty') readSync(output.readFd, byte)
  const times: number[] = []
  for (let left = count; left > 0; left -= 1) {
    const startMs = performance.now()
    writeSync(writeFd, byte)
    readSync(output.readFd, byte)
    times.push(performance.now() - startMs)
  }
  child.kill('SIGKILL')
  closeSync(writeFd)
  if (input !== undefined) closeSync(output.readFd)
  await child.exited
  return times
}
