import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import type { SandboxLimits } from '@sandwire/internal-api'

/** Parent of the sandboxes' cgroups in every hierarchy. */
const OURS = 'sandwire'
const CPU_PERIOD_US = 100_000
/** Operations per second that go with a limit on bytes per second. */
const BYTES_PER_OPERATION = 16 * 1024
const MIN_OPERATIONS = 100

/** Version 1 counts what TCP and UDP sockets queue separately from other memory, and only if that has a limit: a share of the memory limit. */
const QUEUE_SHARE = 1 / 4

const MAX_ATTEMPTS = 10

/** The cgroup version of this machine. With `none`, rlimits and a watchdog enforce limits. */
export type CgroupKind = 'v2' | 'v1' | 'none'

/** The cgroup of one sandbox. */
export interface Cgroup {
  readonly kind: CgroupKind
  /** A process joins by writing its pid to these files. */
  readonly joinFiles: readonly string[]
  /** Creates the cgroup unless it exists, and sets its limits. */
  create(limits: SandboxLimits): void
  /** Limits reads and writes of a block device, named `MAJOR:MINOR`. Throws where the kernel cannot. */
  limitDevice(device: string, bytesPerSecond: number): void
  pids(): number[]
  /** Number of OOM kills in the cgroup. */
  oomKills(): number
  /** Kills all processes if the kernel supports it; otherwise the caller signals each one. */
  kill(): void
  /** Removes the cgroup; false while it has processes. */
  remove(): boolean
}

function isWritable(file: string): boolean {
  try {
    accessSync(file, constants.W_OK)
    return true
  } catch {
    // Missing or not accessible.
    return false
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // The cgroup is gone, or the kernel lacks the file.
    return ''
  }
}

/** Removes a cgroup, and then that of its account unless it has others. */
function removeFolder(folder: string): boolean {
  try {
    rmdirSync(folder)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT'
  }
  const parent = path.dirname(folder)
  if (path.basename(parent) !== OURS) removeFolder(parent)
  return true
}

function pidsIn(file: string): number[] {
  return readText(file).split('\n').filter(Boolean).map(Number)
}

function counter(text: string, name: string): number {
  return Number(new RegExp(`^${name} ([0-9]+)$`, 'm').exec(text)?.[1] ?? 0)
}

/** Detects the version below `root` by creating a cgroup in it. */
export function detectCgroups(root = '/sys/fs/cgroup'): CgroupKind {
  const controllers = readText(path.join(root, 'cgroup.controllers')).split(/\s+/)
  if (['memory', 'pids', 'cpu'].every((each) => controllers.includes(each)))
    return canDelegate(root) ? 'v2' : 'none'
  const isV1 = ['memory', 'pids', 'cpu'].every((each) => isWritable(path.join(root, each, 'cgroup.procs')))
  return isV1 ? 'v1' : 'none'
}

/** Operations are limited too, because small ones cost a disk as much as large ones. */
function operationsFor(bytesPerSecond: number): number {
  return Math.max(MIN_OPERATIONS, Math.floor(bytesPerSecond / BYTES_PER_OPERATION))
}

/** Disks are limited where the kernel can; the other limits are required. */
function delegateDisks(folders: readonly string[]): void {
  try {
    for (const folder of folders) writeFileSync(path.join(folder, 'cgroup.subtree_control'), '+io')
  } catch {
    // No such controller; `canLimitDevices` reports it.
  }
}

/** True when cgroups of this kind can limit reads and writes of devices. */
export function canLimitDevices(kind: CgroupKind, root = '/sys/fs/cgroup'): boolean {
  if (kind === 'v1') return isWritable(path.join(root, 'blkio', 'blkio.throttle.read_bps_device'))
  const delegated = readText(path.join(root, OURS, 'cgroup.subtree_control')).split(/\s+/)
  return kind === 'v2' && delegated.includes('io')
}

function delegate(folders: readonly string[]): void {
  delegateDisks(folders)
  for (const folder of folders)
    writeFileSync(path.join(folder, 'cgroup.subtree_control'), '+memory +pids +cpu')
}

function canDelegate(root: string): boolean {
  try {
    mkdirSync(path.join(root, OURS), { recursive: true })
    delegate([root, path.join(root, OURS)])
    return true
  } catch {
    // Not writable: not root, or a container whose processes are in the root cgroup.
    return false
  }
}

/** Creates a folder whose parent another sandbox of the account may remove meanwhile. */
function createFolder(folder: string): void {
  for (let attempt = 1; ; attempt += 1)
    try {
      mkdirSync(folder, { recursive: true })
      return
    } catch (error) {
      if (attempt === MAX_ATTEMPTS) throw error
    }
}

class CgroupV2 implements Cgroup {
  readonly kind = 'v2'
  readonly joinFiles: readonly string[]
  readonly #folder: string

  constructor(root: string, id: string) {
    this.#folder = path.join(root, OURS, id)
    this.joinFiles = [path.join(this.#folder, 'cgroup.procs')]
  }

  create(limits: SandboxLimits): void {
    createFolder(this.#folder)
    const parent = path.dirname(this.#folder)
    if (path.basename(parent) !== OURS) delegate([parent])
    this.#set('memory.max', limits.memoryBytes)
    // Missing without swap accounting.
    if (existsSync(path.join(this.#folder, 'memory.swap.max'))) this.#set('memory.swap.max', 0)
    this.#set('pids.max', limits.pids)
    this.#set('cpu.max', `${(limits.milliCpus * CPU_PERIOD_US) / 1000} ${CPU_PERIOD_US}`)
  }

  limitDevice(device: string, bytesPerSecond: number): void {
    const operations = operationsFor(bytesPerSecond)
    this.#set(
      'io.max',
      `${device} rbps=${bytesPerSecond} wbps=${bytesPerSecond} riops=${operations} wiops=${operations}`,
    )
  }

  pids(): number[] {
    return pidsIn(path.join(this.#folder, 'cgroup.procs'))
  }

  oomKills(): number {
    return counter(readText(path.join(this.#folder, 'memory.events')), 'oom_kill')
  }

  kill(): void {
    const file = path.join(this.#folder, 'cgroup.kill')
    if (existsSync(file)) writeFileSync(file, '1')
  }

  remove(): boolean {
    return removeFolder(this.#folder)
  }

  #set(name: string, value: number | string): void {
    writeFileSync(path.join(this.#folder, name), String(value))
  }
}

class CgroupV1 implements Cgroup {
  readonly kind = 'v1'
  readonly joinFiles: readonly string[]
  readonly #folders: Readonly<Record<'memory' | 'pids' | 'cpu' | 'blkio', string>>
  /** `blkio` is missing on some machines. */
  readonly #used: readonly string[]

  constructor(root: string, id: string) {
    const at = (controller: string): string => path.join(root, controller, OURS, id)
    const folders = { memory: at('memory'), pids: at('pids'), cpu: at('cpu'), blkio: at('blkio') }
    this.#folders = folders
    this.#used = [
      folders.memory,
      folders.pids,
      folders.cpu,
      ...(canLimitDevices('v1', root) ? [folders.blkio] : []),
    ]
    this.joinFiles = this.#used.map((folder) => path.join(folder, 'cgroup.procs'))
  }

  create(limits: SandboxLimits): void {
    const { memory, pids, cpu } = this.#folders
    for (const folder of this.#used) createFolder(folder)
    this.#setMemory(memory, limits.memoryBytes)
    writeFileSync(path.join(pids, 'pids.max'), String(limits.pids))
    writeFileSync(path.join(cpu, 'cpu.cfs_period_us'), String(CPU_PERIOD_US))
    writeFileSync(path.join(cpu, 'cpu.cfs_quota_us'), String((limits.milliCpus * CPU_PERIOD_US) / 1000))
  }

  limitDevice(device: string, bytesPerSecond: number): void {
    const operations = operationsFor(bytesPerSecond)
    for (const direction of ['read', 'write']) {
      const file = path.join(this.#folders.blkio, `blkio.throttle.${direction}`)
      writeFileSync(`${file}_bps_device`, `${device} ${bytesPerSecond}`)
      writeFileSync(`${file}_iops_device`, `${device} ${operations}`)
    }
  }

  pids(): number[] {
    return pidsIn(path.join(this.#folders.pids, 'cgroup.procs'))
  }

  oomKills(): number {
    return counter(readText(path.join(this.#folders.memory, 'memory.oom_control')), 'oom_kill')
  }

  kill(): void {
    // Not available in version 1.
  }

  remove(): boolean {
    return this.#used.map(removeFolder).every(Boolean)
  }

  /** The limit of memory plus swap may never be below that of memory, so it is raised first and set last. */
  #setMemory(folder: string, bytes: number): void {
    const withSwap = path.join(folder, 'memory.memsw.limit_in_bytes')
    const hasSwap = existsSync(withSwap)
    if (hasSwap) writeFileSync(withSwap, '-1')
    writeFileSync(path.join(folder, 'memory.limit_in_bytes'), String(bytes))
    if (hasSwap) writeFileSync(withSwap, String(bytes))
    const queues = path.join(folder, 'memory.kmem.tcp.limit_in_bytes')
    if (existsSync(queues)) writeFileSync(queues, String(Math.floor(bytes * QUEUE_SHARE)))
  }
}

const NO_CGROUP: Cgroup = {
  kind: 'none',
  joinFiles: [],
  create: () => undefined,
  limitDevice: () => {
    throw new Error('Cannot limit a device: no writable cgroup')
  },
  pids: () => [],
  oomKills: () => 0,
  kill: () => undefined,
  remove: () => true,
}

/** The name of a cgroup that exists, with that of the account it is in. */
export function findCgroup(kind: CgroupKind, id: string, root = '/sys/fs/cgroup'): string {
  const folder = path.join(root, kind === 'v1' ? 'pids' : '', OURS)
  if (kind === 'none' || existsSync(path.join(folder, id)) || !existsSync(folder)) return id
  const account = readdirSync(folder).find((name) => existsSync(path.join(folder, name, id)))
  return account === undefined ? id : path.join(account, id)
}

/** The cgroup of a sandbox, `ID` or `ACCOUNT/ID`: the kernel divides processor time among accounts first. Does not create it. */
export function cgroupOf(kind: CgroupKind, id: string, root = '/sys/fs/cgroup'): Cgroup {
  switch (kind) {
    case 'v2':
      return new CgroupV2(root, id)
    case 'v1':
      return new CgroupV1(root, id)
    case 'none':
      return NO_CGROUP
  }
}
