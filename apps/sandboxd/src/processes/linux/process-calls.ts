import { FFIType } from 'bun:ffi'
import { openLibc } from './open-libc.ts'

const PR_SET_DUMPABLE = 4
const PR_SET_CHILD_SUBREAPER = 36
const P_ALL = 0
const P_PID = 1
const WNOHANG = 0x1
const WEXITED = 0x4
/** Leaves the child waitable. */
const WNOWAIT = 0x0100_0000
/** `siginfo_t`, and where its `si_pid` is on 64-bit machines. */
const SIGINFO_BYTES = 128
const SIGINFO_PID_AT = 16

const libc = openLibc({
  getrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
  prctl: {
    args: ['i32', FFIType.u64_fast, FFIType.u64_fast, FFIType.u64_fast, FFIType.u64_fast],
    returns: 'i32',
  },
  setrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
  waitid: { args: ['i32', 'i32', 'ptr', 'i32'], returns: 'i32' },
})

/** A resource limit; programs may raise the soft value up to the hard one. */
export interface ResourceLimit {
  readonly soft: bigint
  readonly hard: bigint
}

/** Undefined when there is no such limit. */
export function getLimit(resource: number): ResourceLimit | undefined {
  const values = new BigUint64Array(2)
  if (libc.getrlimit(resource, values) < 0) return undefined
  const [soft = 0n, hard = 0n] = values
  return { soft, hard }
}

export function setLimit(resource: number, { soft, hard }: ResourceLimit): number {
  return libc.setrlimit(resource, BigUint64Array.of(soft, hard))
}

/** Makes this process the parent of orphaned descendants. False when the kernel refuses. */
export function becomeSubreaper(): boolean {
  return libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) === 0
}

/** Keeps other processes of the same user from reading this one's memory, and the kernel from dumping it. False when refused. */
export function forbidDumps(): boolean {
  return libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) === 0
}

/** The pid of a child that can be reaped, without reaping it; 0 when there is none, negative on failure. */
export function peekDeadChild(): number {
  const info = new Uint8Array(SIGINFO_BYTES)
  const result = libc.waitid(P_ALL, 0, info, WEXITED | WNOHANG | WNOWAIT)
  return result < 0 ? result : new DataView(info.buffer).getInt32(SIGINFO_PID_AT, true)
}

/** Reaps one child that has exited. */
export function reapChild(pid: number): number {
  return libc.waitid(P_PID, pid, new Uint8Array(SIGINFO_BYTES), WEXITED | WNOHANG)
}
