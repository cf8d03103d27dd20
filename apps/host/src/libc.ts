import { dlopen, type FFIFunction } from 'bun:ffi'

/** Binds functions of the C library, by glibc's stable ABI name. */
export function openLibc<const F extends Record<string, FFIFunction>>(functions: F) {
  return dlopen('libc.so.6', functions).symbols
}
