import { closeSync, mkdtempSync, openSync, rmdirSync } from 'node:fs'
import { DENIED_CALLS, FILTERED_CALLS } from '../../isolation/seccomp/denied-calls.ts'
import { type ProbeReport, report } from '../probe-protocol.ts'
import { cString, EAFNOSUPPORT, ENOSYS, EPERM, systemCall } from './system-call.ts'

const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'x64'
const AT_FDCWD = -100
const CLONE_NEWUSER = 0x10000000
const SIGCHLD = 17
const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c
const AF_VSOCK = 40
const SYS_EXIT_GROUP = { x64: 231, arm64: 94 }[ARCHITECTURE]

function numberOf(name: string): number {
  const number = { ...DENIED_CALLS, ...FILTERED_CALLS }[name]?.[ARCHITECTURE]
  if (number === undefined) throw new Error(`No system call "${name}" here`)
  return number
}

/** A system call to attempt. `run` returns at least 0 when it succeeded. */
interface Attempt {
  readonly name: string
  readonly what: string
  readonly run: () => number
  /** The errno that the sandbox should return. */
  readonly refusal?: number
}

/** Each of these succeeds outside a sandbox, some only for root. */
const ATTEMPTS: readonly Attempt[] = [
  {
    name: 'clone-user-namespace',
    what: 'start a process in a user namespace',
    run: () => {
      const pid = systemCall(numberOf('clone'), CLONE_NEWUSER | SIGCHLD)
      // The child must not continue as a second prober.
      if (pid === 0) systemCall(SYS_EXIT_GROUP, 0)
      return pid
    },
  },
  {
    name: 'mount',
    what: 'mount a file system',
    run: tryMount,
  },
  {
    name: 'fsopen',
    what: 'open a file system',
    run: () => systemCall(numberOf('fsopen'), cString('tmpfs'), 0),
  },
  {
    name: 'process-vm-read',
    what: "read a process's memory",
    run: () => systemCall(numberOf('process_vm_readv'), process.pid, 0, 0, 0, 0, 0),
  },
  {
    name: 'bpf',
    what: 'load a program into the kernel',
    run: () => systemCall(numberOf('bpf'), 0, new Uint8Array(new Uint32Array([2, 4, 4, 1]).buffer), 16),
  },
  {
    name: 'io-uring',
    what: 'make an io_uring',
    run: () => systemCall(numberOf('io_uring_setup'), 1, new Uint8Array(120)),
  },
  {
    name: 'asynchronous-io',
    what: 'take contexts of asynchronous I/O, of which the machine has few',
    run: () => systemCall(numberOf('io_setup'), 1, new Uint8Array(8)),
    refusal: ENOSYS,
  },
  {
    name: 'keyctl',
    what: "use the kernel's keyrings",
    run: () => systemCall(numberOf('keyctl'), 0, -3, 1),
  },
  {
    name: 'userfaultfd',
    what: 'handle page faults',
    run: () => systemCall(numberOf('userfaultfd'), 1),
  },
  {
    name: 'perf-event',
    what: 'measure with performance events',
    run: () => systemCall(numberOf('perf_event_open'), softwareEvent(), 0, -1, -1, 0),
  },
  {
    name: 'name-to-handle',
    what: 'name a file by handle',
    run: () => {
      const handle = new Uint8Array(136)
      new DataView(handle.buffer).setUint32(0, 128, true)
      return systemCall(numberOf('name_to_handle_at'), AT_FDCWD, cString('/'), handle, new Uint8Array(4), 0)
    },
  },
  {
    name: 'type-into-terminal',
    what: 'type into a terminal (TIOCSTI)',
    run: () => withTerminal((fd) => systemCall(numberOf('ioctl'), fd, TIOCSTI, cString('x'))),
  },
  {
    name: 'console-selection',
    what: 'use the console (TIOCLINUX)',
    run: () => withTerminal((fd) => systemCall(numberOf('ioctl'), fd, TIOCLINUX, new Uint8Array([6]))),
  },
  {
    name: 'vsock',
    what: 'talk to the machine below by vsock',
    run: () => systemCall(numberOf('socket'), AF_VSOCK, 1, 0),
    refusal: EAFNOSUPPORT,
  },
  // Last: if it succeeds, this process is traced from then on.
  { name: 'ptrace', what: 'trace a process', run: () => systemCall(numberOf('ptrace'), 0, 0, 0, 0) },
]

/** Uses a folder of its own and unmounts it, so that a success hides nothing. */
function tryMount(): number {
  const folder = mkdtempSync('/tmp/.probe-mount-')
  const result = systemCall(numberOf('mount'), cString('none'), cString(folder), cString('tmpfs'), 0, 0)
  if (result >= 0) systemCall(numberOf('umount2'), cString(folder), 0)
  rmdirSync(folder)
  return result
}

/** `struct perf_event_attr` for the software clock of this process, user side only. */
function softwareEvent(): Uint8Array {
  const attributes = new Uint8Array(128)
  const view = new DataView(attributes.buffer)
  view.setUint32(0, 1, true)
  view.setUint32(4, 128, true)
  // Disabled, without kernel and hypervisor.
  view.setUint32(40, 1 | (1 << 5) | (1 << 6), true)
  return attributes
}

function withTerminal(use: (fd: number) => number): number {
  const fd = openSync('/dev/ptmx', 'r+')
  try {
    return use(fd)
  } finally {
    closeSync(fd)
  }
}

function attempt({ name, what, run, refusal = EPERM }: Attempt): ProbeReport {
  const result = run()
  if (result >= 0) return report(name, 'failed', `could ${what}`)
  if (result === -refusal) return report(name, 'ok', `cannot ${what}`)
  return report(name, 'weak', `cannot ${what}, but not because of the filter (error ${-result})`)
}

/** Attempts the system calls that the filter denies. */
export function probeKernel(): ProbeReport[] {
  return ATTEMPTS.map(attempt)
}

/** Attempts with command-line tools. */
const COMMANDS: readonly {
  readonly name: string
  readonly argv: readonly string[]
  readonly what: string
}[] = [
  {
    name: 'user-namespace',
    argv: ['unshare', '--user', '--map-root-user', 'true'],
    what: 'make a user namespace',
  },
  {
    name: 'enter-namespace',
    argv: ['nsenter', '--uts=/proc/self/ns/uts', 'true'],
    what: 'enter a namespace',
  },
]

/** Runs the commands; a success is reported as `failed`. */
export function probeTools(): ProbeReport[] {
  return COMMANDS.map(({ name, argv, what }) => {
    const got = Bun.spawnSync([...argv], { stdio: ['ignore', 'ignore', 'ignore'] }).success
    return got ? report(name, 'failed', `could ${what}`) : report(name, 'ok', `cannot ${what}`)
  })
}
