import { dlopen, FFIType } from 'bun:ffi'

const PR_SET_DUMPABLE = 4

/** Keeps other processes of the same user from reading this one's memory, and the kernel from dumping it. False when refused. */
export function forbidDumps(): boolean {
  const libc = dlopen('libc.so.6', {
    prctl: { args: [FFIType.i32, FFIType.u64, FFIType.u64, FFIType.u64, FFIType.u64], returns: FFIType.i32 },
  })
  return libc.symbols.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) === 0
}
