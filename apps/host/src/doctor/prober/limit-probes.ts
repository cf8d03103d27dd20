import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import type { SandboxLimits } from '@sandwire/internal-api'
import { inodesFor } from '../../isolation/disk-image.ts'
import { report, type ProbeReport } from '../probe-protocol.ts'
import { fill } from './file-probes.ts'
import { cString, systemCall } from './system-call.ts'

const PR_SET_DUMPABLE = 4

/** Multiple of the limit that is attempted. */
const EXCESS = 2
/** More terminals and descriptors than a sandbox needs. */
const MANY_TERMINALS = 256
const MANY_DESCRIPTORS = 6_000
const BURN_MS = 1_500
/** Time for a watchdog to notice a full disk. */
const WATCHDOG_MS = 8_000

/** Ways to use memory: mapped, in an unmapped memory file, and in such a file of a non-dumpable process. */
const ALLOCATIONS = ['mapped', 'held', 'hidden'] as const
type Allocation = (typeof ALLOCATIONS)[number]

const ALLOCATION_REPORTS: Readonly<Record<Allocation, ProbeReport>> = {
  mapped: report('memory-limit', 'failed', 'could use twice its memory'),
  held: report('memory-limit', 'failed', 'could use twice its memory in an unmapped memory file'),
  hidden: report('memory-limit', 'failed', 'could use twice its memory in a process that hides it'),
}

/** Processes that together use three times the limit, each half of it. */
const ALLOCATING_PROCESSES = 6

/** Uses memory in several processes at once; true when they exceeded the limit and lived. */
async function canSpread(limits: SandboxLimits, self: readonly string[]): Promise<boolean> {
  const argv = [...self, 'allocate', String(limits.memoryBytes / 2), 'mapped']
  const processes = Array.from({ length: ALLOCATING_PROCESSES }, () =>
    Bun.spawn(argv, { stdout: 'pipe', stderr: 'ignore' }),
  )
  const outputs = await Promise.all(processes.map((child) => new Response(child.stdout).text()))
  return outputs.filter((text) => text.includes('allocated')).length > 2
}

/** Runs this program again to use memory, since it will be killed. */
async function probeMemory(limits: SandboxLimits, self: readonly string[]): Promise<ProbeReport> {
  const bytes = String(limits.memoryBytes * EXCESS)
  const got = ALLOCATIONS.find((how) => {
    const child = Bun.spawnSync([...self, 'allocate', bytes, how], { stdout: 'pipe', stderr: 'ignore' })
    return child.stdout.toString().includes('allocated')
  })
  if (got !== undefined) return ALLOCATION_REPORTS[got]
  if (await canSpread(limits, self))
    return report('memory-limit', 'failed', 'could use more than its memory in several processes')
  return report(
    'memory-limit',
    'ok',
    'a process that exceeds the memory limit is killed, the others continue',
  )
}

/** Writes bytes to a new unmapped memory file. Several files, because each has a size limit. */
function holdInFile(bytes: Uint8Array): void {
  writeSync(systemCall(process.arch === 'arm64' ? 279 : 319, cString('probe'), 0), bytes)
}

/** Uses memory and keeps it; prints a line if it survives. */
export async function takeMemory(bytes: number, how: string | undefined): Promise<void> {
  // The kernel would otherwise kill a process with more mapped memory.
  writeFileSync('/proc/self/oom_score_adj', '1000')
  if (how === 'hidden') systemCall(process.arch === 'arm64' ? 167 : 157, PR_SET_DUMPABLE, 0)
  const held: Uint8Array[] = []
  const chunk = 16 * 1024 ** 2
  const spare = new Uint8Array(chunk).fill(1)
  for (let taken = 0; taken < bytes; taken += chunk) {
    if (how === 'mapped') held.push(new Uint8Array(chunk).fill(taken / chunk))
    else holdInFile(spare)
    // Gives a watchdog time to check.
    await Bun.sleep(20)
  }
  await Bun.sleep(1_500)
  process.stdout.write(`allocated ${held.length > 0 ? held.length : bytes / chunk}\n`)
}

const IS_ARM = process.arch === 'arm64'
const SYS_SOCKET = IS_ARM ? 198 : 41
const SYS_SENDTO = IS_ARM ? 206 : 44
const AF_NETLINK = 16
const SOCK_RAW_NONBLOCKING = 3 | 0o4000
const UNKNOWN_TYPE = 999
const NLM_F_REQUEST_AND_ACK = 5
const SENT_BYTES = 32_000
/** The most sockets of this one process, below its limit of descriptors. */
const MANY_SOCKETS = 3_000

/** Queues answers of the kernel in netlink sockets and keeps them; prints a line if it survives. */
export async function takeQueues(bytes: number): Promise<void> {
  writeFileSync('/proc/self/oom_score_adj', '1000')
  const message = new Uint8Array(SENT_BYTES)
  const header = new DataView(message.buffer)
  header.setUint32(0, SENT_BYTES, true)
  header.setUint16(4, UNKNOWN_TYPE, true)
  header.setUint16(6, NLM_F_REQUEST_AND_ACK, true)
  let queued = 0
  for (let sockets = 0; queued < bytes && sockets < MANY_SOCKETS; sockets += 1) {
    const fd = systemCall(SYS_SOCKET, AF_NETLINK, SOCK_RAW_NONBLOCKING, 0)
    if (fd < 0) break
    // An answer contains the message. The kernel drops answers when the queue is full.
    for (let sent = 0; sent < 6; sent += 1) systemCall(SYS_SENDTO, fd, message, SENT_BYTES, 0, 0, 0)
    queued += 6 * SENT_BYTES
    if (sockets % 100 === 0) await Bun.sleep(20)
  }
  await Bun.sleep(1_500)
  process.stdout.write(queued >= bytes ? 'allocated\n' : 'not enough\n')
}

function probeSocketQueues(limits: SandboxLimits, self: readonly string[]): ProbeReport {
  const argv = [...self, 'queues', String(limits.memoryBytes * EXCESS)]
  const child = Bun.spawnSync(argv, { stdout: 'pipe', stderr: 'ignore' })
  return child.stdout.toString().includes('allocated')
    ? report('socket-queues', 'failed', 'could use twice its memory in queues of netlink sockets')
    : report('socket-queues', 'ok', 'cannot use twice its memory in queues of netlink sockets')
}

async function probePids(limits: SandboxLimits): Promise<ProbeReport> {
  const children: Bun.Subprocess[] = []
  const wanted = limits.pids + 64
  try {
    while (children.length < wanted)
      children.push(Bun.spawn(['sleep', '60'], { stdio: ['ignore', 'ignore', 'ignore'] }))
  } catch {
    // The limit.
  }
  const started = children.length
  for (const child of children) child.kill('SIGKILL')
  await Promise.all(children.map((child) => child.exited))
  return started < limits.pids
    ? report('process-limit', 'ok', `could start no more than ${started} processes`)
    : report(
        'process-limit',
        'failed',
        `could start ${started} processes, more than the limit of ${limits.pids}`,
      )
}

/** Opens a file again and again; returns how often that worked. */
function openMany(file: string, count: number): number {
  const open: number[] = []
  try {
    while (open.length < count) open.push(openSync(file, 'r+'))
  } catch {
    // The limit.
  }
  for (const fd of open) closeSync(fd)
  return open.length
}

function probeTerminals(): ProbeReport {
  const opened = openMany('/dev/ptmx', MANY_TERMINALS)
  return opened < MANY_TERMINALS
    ? report('terminal-limit', 'ok', `could open no more than ${opened} terminals`)
    : report('terminal-limit', 'weak', `could open ${opened} terminals of the pool that all sandboxes share`)
}

function probeDescriptors(): ProbeReport {
  const opened = openMany('/dev/null', MANY_DESCRIPTORS)
  return opened < MANY_DESCRIPTORS
    ? report('descriptor-limit', 'ok', `could open no more than ${opened} files at once`)
    : report('descriptor-limit', 'failed', `could open ${opened} files at once`)
}

async function probeProcessor(limits: SandboxLimits): Promise<ProbeReport> {
  const burners = Array.from({ length: 4 }, () =>
    Bun.spawn(['sh', '-c', 'while :; do :; done'], { stdio: ['ignore', 'ignore', 'ignore'] }),
  )
  await Bun.sleep(BURN_MS)
  for (const burner of burners) burner.kill('SIGKILL')
  await Promise.all(burners.map((burner) => burner.exited))
  const usedUs = burners.reduce((sum, burner) => sum + Number(burner.resourceUsage()?.cpuTime.total ?? 0), 0)
  const share = usedUs / (BURN_MS * 1000)
  const line = `four busy processes used ${share.toFixed(2)} CPUs of ${limits.milliCpus / 1000}`
  return report('processor-limit', share < (limits.milliCpus / 1000) * 1.5 ? 'ok' : 'weak', line)
}

/** Attempts to exceed every limit but the disk's. */
export async function probeLimits(limits: SandboxLimits, self: readonly string[]): Promise<ProbeReport[]> {
  return [
    await probePids(limits),
    probeTerminals(),
    probeDescriptors(),
    await probeProcessor(limits),
    await probeMemory(limits, self),
    probeSocketQueues(limits, self),
  ]
}

function probeInodes(folder: string, limits: SandboxLimits): ProbeReport {
  const wanted = inodesFor(limits.diskBytes) + 1_024
  let made = 0
  try {
    for (; made < wanted; made += 1) writeFileSync(`${folder}/.inode-${made}`, '')
  } catch {
    // The limit.
  }
  return made < wanted
    ? report('file-limit', 'ok', `could create no more than ${made} files`)
    : report('file-limit', 'weak', `could create ${made} files before the watchdog noticed`)
}

/** Fills the disk. With a watchdog this stops the sandbox, and nothing is reported. */
export async function probeDisk(folder: string, limits: SandboxLimits): Promise<ProbeReport[]> {
  const inodes = probeInodes(folder, limits)
  const written = fill(folder, limits.diskBytes * EXCESS)
  if (written <= limits.diskBytes)
    return [inodes, report('disk-limit', 'ok', 'cannot write more than its disk')]
  await Bun.sleep(WATCHDOG_MS)
  return [inodes, report('disk-limit', 'failed', 'could write twice its disk')]
}
