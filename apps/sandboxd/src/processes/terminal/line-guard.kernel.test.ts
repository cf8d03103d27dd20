import { afterAll, expect, test } from 'bun:test'
import { closeFd, ioctlPointer, readableBytes, readFd, setNonBlocking, writeFd } from '../linux/libc.ts'
import { LineGuard } from './line-guard.ts'
import { openPty, type Termios, TermiosReader } from './pty-device.ts'

const TCSETS = 0x5402
const INPUT_FLAGS_AT = 0
const LOCAL_FLAGS_AT = 3
const ICANON = 0o2
/** INLCR, IGNCR, ICRNL, IXON, IUTF8. */
const INPUT_FLAGS = [0o100, 0o200, 0o400, 0o2000, 0o40000] as const
/** ISIG, ECHO, ECHOE, ECHOK, NOFLSH, ECHOKE, IEXTEN. */
const LOCAL_FLAGS = [0o1, 0o10, 0o20, 0o40, 0o200, 0o4000, 0o100000] as const
/** Letters, two of Latin-1, parts of UTF-8 characters, and every key that edits or ends a line. */
const KEYS = [
  97, 97, 98, 95, 32, 46, 233, 215, 195, 169, 128, 208, 182, 127, 127, 23, 23, 21, 22, 18, 13, 10, 4, 3, 26,
  17,
] as const
const CASES = 3_000
const MAX_KEYS = 24

/** A seeded generator, so that a failing case can be repeated by its number. */
function seeded(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const device = openPty(80, 24)
if (typeof device === 'number') throw new Error(`No terminal: ${device}`)
const { masterFd, slaveFd } = device
setNonBlocking(slaveFd)
const scratch = new Uint8Array(64 * 1024)
const plainModes = new Int32Array(9)
ioctlPointer(slaveFd, 0x5401, plainModes)

afterAll(() => {
  closeFd(masterFd)
  closeFd(slaveFd)
})

function setModes(inputFlags: number, localFlags: number): void {
  const modes = plainModes.slice()
  modes[INPUT_FLAGS_AT] = inputFlags
  modes[LOCAL_FLAGS_AT] = localFlags
  ioctlPointer(slaveFd, TCSETS, modes)
}

function currentModes(): Termios {
  const termios = new TermiosReader(masterFd).read()
  if (termios === undefined) throw new Error('The terminal is gone')
  return termios
}

/** Bytes of the unfinished line in the kernel, as read by a program that turns off canonical mode. */
function lengthInKernel(inputFlags: number, localFlags: number): number {
  // A read waits for pending input. Finished lines come first; an end of file reads as no bytes.
  while (readFd(slaveFd, scratch) >= 0);
  setModes(inputFlags, localFlags & ~ICANON)
  const length = readableBytes(slaveFd)
  while (readFd(slaveFd, scratch) > 0);
  while (readFd(masterFd, scratch) > 0);
  return length
}

function pick(flags: readonly number[], random: (below: number) => number): number {
  return flags.reduce((all, flag) => (random(2) === 0 ? all : all | flag), 0)
}

test(`a line guard counts the same bytes as the kernel, for ${CASES} lines in any mode`, () => {
  for (let seed = 0; seed < CASES; seed += 1) {
    const random = seeded(seed)
    const inputFlags = pick(INPUT_FLAGS, random)
    const localFlags = pick(LOCAL_FLAGS, random) | ICANON
    const keys = new Uint8Array(
      Array.from({ length: 1 + random(MAX_KEYS) }, () => KEYS[random(KEYS.length)] ?? 0),
    )
    setModes(inputFlags, localFlags)
    const guard = new LineGuard()
    guard.advance(keys, currentModes())
    writeFd(masterFd, keys)
    const typed = { seed, keys: Buffer.from(keys).toString('hex'), inputFlags, localFlags }
    expect({ ...typed, length: guard.length }).toEqual({
      ...typed,
      length: lengthInKernel(inputFlags, localFlags),
    })
  }
})
