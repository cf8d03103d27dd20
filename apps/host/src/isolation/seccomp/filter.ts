import {
  ALLOW,
  assemble,
  DATA_ARCH,
  DATA_NR,
  highHalfOfArgument,
  load,
  lowHalfOfArgument,
  refuse,
  unlessEqual,
  whenAnyBit,
  whenAtLeast,
  whenEqual,
  type Instruction,
} from './bpf.ts'
import { DENIED_CALLS, FILTERED_CALLS } from './denied-calls.ts'

export type Architecture = 'x64' | 'arm64'

const EPERM = 1
const ENOSPC = 28
const ENOSYS = 38
const EAFNOSUPPORT = 97

const AUDIT_ARCH = { x64: 0xc000003e, arm64: 0xc00000b7 } as const
/** Bit of x32 ABI calls, which would otherwise bypass the filter with other numbers. */
const X32_BIT = 0x40000000

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const CLONE_NEW_ANY = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000

/** TIOCSTI and TIOCLINUX. */
const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c

/** Allowed personalities: Linux, 32-bit, UNAME26, and the query. */
const PERSONALITIES = [0, 0x8, 0x20000, 0x20008, 0xffffffff]

/** UNIX, INET, INET6, NETLINK. Not VSOCK, which network namespaces do not isolate. */
const SOCKET_FAMILIES = [1, 2, 10, 16]

/**
 * System V shared memory outlives processes, so killing them does not free it. Segments of one page, which databases use as
 * locks, are allowed; the kernel limits a sandbox to 4096 of them, 16 MiB.
 */
const MAX_SEGMENT_BYTES = 4096

/** With this many semaphores each, the 32,000 sets that the kernel allows a sandbox take 64 MiB. Programs use one to three. */
const MAX_SEMAPHORES = 16

/** SOL_SOCKET, SO_SNDBUF and SO_RCVBUF. */
const SOL_SOCKET = 1
const QUEUE_SIZES = [7, 8]
/** Instead of an error: the call has no effect, as if the size were the most that the kernel allows. */
const NO_EFFECT = 0

/** Denies an argument that is not in `allowed`. */
function allowOnly(argument: number, allowed: readonly number[], errno: number): Instruction[] {
  const body = allowed.reduceRight<Instruction[]>((rest, value) => unlessEqual(value, rest), [refuse(errno)])
  return [load(lowHalfOfArgument(argument)), ...body, ALLOW]
}

/** Filters one call by its number, which is loaded before and after. */
function onCall(number: number | undefined, body: readonly Instruction[]): Instruction[] {
  return number === undefined ? [] : whenEqual(number, body)
}

/**
 * Makes memory countable where a watchdog limits it. Files in memory can be held by a process that hides its descriptors, or by a
 * message in a socket's queue; with ENOSYS, programs use `/dev/shm` instead. Queues of sockets keep their default size. Message queues
 * and large sets of semaphores (System V) belong to no process, and the kernel allows gigabytes of them.
 */
function createMemoryRules(architecture: Architecture): Instruction[] {
  const { memfd_create, memfd_secret, msgget, semget, setsockopt } = FILTERED_CALLS
  return [
    ...onCall(memfd_create[architecture], [refuse(ENOSYS)]),
    ...onCall(memfd_secret[architecture], [refuse(ENOSYS)]),
    ...onCall(msgget[architecture], [refuse(ENOSYS)]),
    ...onCall(semget[architecture], [
      load(lowHalfOfArgument(1)),
      ...whenAtLeast(MAX_SEMAPHORES + 1, [refuse(ENOSPC)]),
      ALLOW,
    ]),
    ...onCall(setsockopt[architecture], [
      load(lowHalfOfArgument(1)),
      ...unlessEqual(SOL_SOCKET, [ALLOW]),
      load(lowHalfOfArgument(2)),
      ...QUEUE_SIZES.flatMap((option) => whenEqual(option, [refuse(NO_EFFECT)])),
      ALLOW,
    ]),
  ]
}

/** The filter as instructions: everything else is allowed. `isMemoryWatched`: memory is limited by a watchdog, not by a cgroup. */
export function createFilter(architecture: Architecture, isMemoryWatched = false): Instruction[] {
  const { clone, clone3, io_setup, ioctl, personality, prlimit64, shmget, socket, socketpair } =
    FILTERED_CALLS
  return [
    load(DATA_ARCH),
    ...unlessEqual(AUDIT_ARCH[architecture], [refuse(EPERM)]),
    load(DATA_NR),
    ...(architecture === 'x64' ? whenAtLeast(X32_BIT, [refuse(EPERM)]) : []),
    ...Object.values(DENIED_CALLS).flatMap((denied) => onCall(denied[architecture], [refuse(EPERM)])),
    // Its flags are behind a pointer; with ENOSYS, libraries fall back to `clone`.
    ...onCall(clone3[architecture], [refuse(ENOSYS)]),
    // All sandboxes share `fs.aio-max-nr`; with ENOSYS, databases use threads instead.
    ...onCall(io_setup[architecture], [refuse(ENOSYS)]),
    ...onCall(clone[architecture], [
      load(lowHalfOfArgument(0)),
      ...whenAnyBit(CLONE_NEW_ANY, [refuse(EPERM)]),
      ALLOW,
    ]),
    ...onCall(ioctl[architecture], [
      load(lowHalfOfArgument(1)),
      ...whenEqual(TIOCSTI, [refuse(EPERM)]),
      ...whenEqual(TIOCLINUX, [refuse(EPERM)]),
      ALLOW,
    ]),
    ...onCall(personality[architecture], allowOnly(0, PERSONALITIES, EPERM)),
    // A process may read limits, and change its own. Without root, sandboxd has the same user as processes.
    ...onCall(prlimit64[architecture], [
      load(lowHalfOfArgument(0)),
      ...whenEqual(0, [ALLOW]),
      load(lowHalfOfArgument(2)),
      ...unlessEqual(0, [refuse(EPERM)]),
      load(highHalfOfArgument(2)),
      ...unlessEqual(0, [refuse(EPERM)]),
      ALLOW,
    ]),
    ...onCall(shmget[architecture], [
      load(highHalfOfArgument(1)),
      ...unlessEqual(0, [refuse(ENOSPC)]),
      load(lowHalfOfArgument(1)),
      ...whenAtLeast(MAX_SEGMENT_BYTES + 1, [refuse(ENOSPC)]),
      ALLOW,
    ]),
    ...onCall(socket[architecture], allowOnly(0, SOCKET_FAMILIES, EAFNOSUPPORT)),
    ...onCall(socketpair[architecture], allowOnly(0, SOCKET_FAMILIES, EAFNOSUPPORT)),
    ...(isMemoryWatched ? createMemoryRules(architecture) : []),
    ALLOW,
  ]
}

/** The filter as `bwrap --seccomp` takes it. */
export function createFilterBytes(architecture: Architecture, isMemoryWatched = false): Uint8Array {
  return assemble(createFilter(architecture, isMemoryWatched))
}
