import { FFIType, ptr, read } from 'bun:ffi'
import { openLibc } from '../../libc.ts'

export const EPERM = 1
export const ENOSYS = 38
export const EAFNOSUPPORT = 97

const libc = openLibc({
  __errno_location: { args: [], returns: 'ptr' },
  syscall: {
    args: Array.from({ length: 7 }, () => FFIType.i64),
    returns: FFIType.i64,
  },
})

/** A number, or memory whose address is passed. */
type Argument = number | Uint8Array

/** Makes a system call; returns its result, or the negative errno. */
export function systemCall(number: number, ...given: readonly Argument[]): number {
  const values = given.map((each) => BigInt(typeof each === 'number' ? each : ptr(each)))
  const [a = 0n, b = 0n, c = 0n, d = 0n, e = 0n, f = 0n] = values
  const result = Number(libc.syscall(BigInt(number), a, b, c, d, e, f))
  const address = libc.__errno_location()
  return result >= 0 || address === null ? result : -read.i32(address, 0)
}

/** A NUL-terminated string. */
export function cString(text: string): Uint8Array {
  return new TextEncoder().encode(`${text}\0`)
}
