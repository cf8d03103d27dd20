import { dlopen, type FFIFunction, read } from 'bun:ffi'

/** Binds functions of the C library, by glibc's stable ABI name. `i64_fast` keeps byte counts plain numbers. */
export function openLibc<const F extends Record<string, FFIFunction>>(functions: F) {
  return dlopen('libc.so.6', functions).symbols
}

/** errno is per thread at a fixed address; each thread has its own instance of this module. */
const errnoAddress = openLibc({ __errno_location: { args: [], returns: 'ptr' } }).__errno_location()

/** Turns a C result into the kernel's own convention: a count, or a negative errno. */
export function orErrno(result: number | bigint): number {
  const value = Number(result)
  if (value >= 0 || errnoAddress === null) return value
  return -read.i32(errnoAddress, 0)
}
