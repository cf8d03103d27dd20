import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { type ProbeTargets, type ProbeReport, report } from '../probe-protocol.ts'

/** Folders that a process may write to. */
const WRITABLE_FOLDERS = ['/workspace', '/home/user', '/tmp', '/dev/shm']
const READ_ONLY_FOLDERS = [
  '/',
  '/usr',
  '/usr/bin',
  '/etc',
  '/opt',
  '/opt/sandwire',
  '/dev',
  '/run',
  '/var',
  '/home',
  '/proc',
]
/** Kernel settings. */
const KERNEL_FILES = [
  '/proc/sysrq-trigger',
  '/proc/sys/kernel/core_pattern',
  '/proc/sys/kernel/modprobe',
  '/proc/sys/vm/drop_caches',
  '/sys/kernel/uevent_helper',
  '/sys/fs/cgroup/cgroup.procs',
  '/sys/fs/cgroup/memory/cgroup.procs',
]

/** More than fit into the memory of the probed sandbox. */
const MANY_FILES = 40_000

function canCreateIn(folder: string): boolean {
  const file = `${folder}/.probe-${process.pid}`
  try {
    closeSync(openSync(file, 'wx'))
    unlinkSync(file)
    return true
  } catch {
    // Refused, as it should be.
    return false
  }
}

function canOpen(file: string, flags: 'r' | 'r+' | 'w'): boolean {
  try {
    closeSync(openSync(file, flags))
    return true
  } catch {
    // Absent or refused.
    return false
  }
}

function probeWrites(): ProbeReport {
  const open = READ_ONLY_FOLDERS.filter(canCreateIn)
  const closed = WRITABLE_FOLDERS.filter((folder) => existsSync(folder) && !canCreateIn(folder))
  if (open.length > 0) return report('write-outside', 'failed', `could write to ${open.join(', ')}`)
  if (closed.length > 0) return report('write-outside', 'weak', `cannot write to ${closed.join(', ')} either`)
  return report('write-outside', 'ok', `cannot write to ${READ_ONLY_FOLDERS.join(', ')}`)
}

function probeKernelFiles(): ProbeReport {
  const open = KERNEL_FILES.filter((file) => canOpen(file, 'r+'))
  return open.length > 0
    ? report('kernel-switches', 'failed', `could open ${open.join(', ')} for writing`)
    : report('kernel-switches', 'ok', `cannot open ${KERNEL_FILES.length} kernel settings for writing`)
}

function probeDeviceNode(): ProbeReport {
  const file = `/tmp/.probe-device-${process.pid}`
  const made = Bun.spawnSync(['mknod', file, 'b', '7', '0'], { stderr: 'ignore' }).success
  const isUsable = made && canOpen(file, 'r')
  if (made) unlinkSync(file)
  if (isUsable) return report('device-node', 'failed', 'could create and open a block device')
  return made
    ? report('device-node', 'weak', 'could create a block device, but not open it')
    : report('device-node', 'ok', 'cannot create a device')
}

function probeSetuid(): ProbeReport {
  const status = readFileSync('/proc/self/status', 'utf8')
  const isForbidden = /^NoNewPrivs:\s*1$/m.test(status)
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const usr = mounts.findLast((line) => line.split(' ')[1] === '/usr')
  const isIgnored = usr?.split(' ')[3]?.split(',').includes('nosuid') === true
  if (isForbidden && isIgnored)
    return report('setuid', 'ok', 'setuid programs have no effect (no_new_privs and nosuid)')
  return isForbidden || isIgnored
    ? report(
        'setuid',
        'weak',
        `setuid programs have no effect, but only by ${isForbidden ? 'no_new_privs' : 'nosuid'}`,
      )
    : report('setuid', 'failed', 'setuid programs run with the rights of their owner')
}

function probeCapabilities(): ProbeReport {
  const status = readFileSync('/proc/self/status', 'utf8')
  const held = [...status.matchAll(/^Cap(Inh|Prm|Eff|Bnd|Amb):\s*([0-9a-f]+)$/gm)].filter(
    ([, , bits = '0']) => BigInt(`0x${bits}`) !== 0n,
  )
  const names = held.map(([, name = '']) => name)
  if (names.length === 0)
    return report('capabilities', 'ok', 'has no capability, and empty sets to gain any from')
  const isReal = names.some((name) => name === 'Prm' || name === 'Eff' || name === 'Amb')
  return isReal
    ? report('capabilities', 'failed', 'has capabilities')
    : report('capabilities', 'weak', `has no capability, but non-empty sets: ${names.join(', ')}`)
}

function probeDescriptors(): ProbeReport {
  const listed = Bun.spawnSync(['ls', '/proc/self/fd'], { stdin: 'ignore' })
    .stdout.toString()
    .trim()
    .split('\n')
  // The fourth is the listing itself.
  const extra = listed.filter((fd) => Number(fd) > 3)
  const own = readdirSync('/proc/self/fd')
    .map((fd) => linkOf(`/proc/self/fd/${fd}`))
    .filter((target) => target?.startsWith('/') === true || target?.startsWith('user:') === true)
    .filter((target) => target !== '/dev/null' && !(target ?? '').startsWith('/proc/'))
  return extra.length === 0 && own.length === 0
    ? report('descriptors', 'ok', 'inherits only stdin, stdout and stderr')
    : report('descriptors', 'failed', `inherits descriptors: ${[...extra, ...own].join(', ')}`)
}

function linkOf(file: string): string | undefined {
  try {
    return readlinkSync(file)
  } catch {
    // Closed meanwhile, or not readable.
    return undefined
  }
}

/** Looks for processes with another root, through which files outside would be accessible. */
function probeRoots(): ProbeReport {
  const own = statSync('/')
  const strange = readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .filter((pid) => {
      try {
        const root = statSync(`/proc/${pid}/root/`)
        return root.dev !== own.dev || root.ino !== own.ino
      } catch {
        // Refused or gone.
        return false
      }
    })
  return strange.length === 0
    ? report('process-roots', 'ok', 'finds no other root through /proc')
    : report('process-roots', 'failed', `could enter the root of process ${strange.join(', ')}`)
}

function probeForeignFiles(targets: ProbeTargets): ProbeReport {
  const seen = targets.files.filter((file) => canOpen(file, 'r'))
  return seen.length === 0
    ? report('foreign-files', 'ok', `cannot open ${targets.files.length} files of this machine`)
    : report('foreign-files', 'failed', `could read ${seen.join(', ')}`)
}

/** `/tmp` is memory; without a size it could use all of it. */
function probeTemporaryBytes(): ProbeReport {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const bounded = ['/tmp', '/dev/shm', '/run'].filter((folder) => {
    const options = mounts.findLast((line) => line.split(' ')[1] === folder)?.split(' ')[3]
    return options?.split(',').some((option) => option.startsWith('size=') || option === 'ro') === true
  })
  return bounded.length === 3
    ? report('temporary-bytes', 'ok', '/tmp, /dev/shm and /run have a size limit')
    : report(
        'temporary-bytes',
        'failed',
        `only ${bounded.join(', ') || 'no'} temporary folder has a size limit`,
      )
}

/** Empty files take memory too; without a limit they could use all of it. */
function probeTemporaryFiles(): ProbeReport {
  const folder = mkdtempSync('/tmp/.probe-files-')
  let made = 0
  try {
    for (; made < MANY_FILES; made += 1) closeSync(openSync(`${folder}/${made}`, 'wx'))
  } catch {
    // The limit.
  }
  rmSync(folder, { recursive: true })
  return made < MANY_FILES
    ? report('temporary-files', 'ok', `could create no more than ${made} temporary files`)
    : report('temporary-files', 'weak', `could create ${made} temporary files, which take memory`)
}

/** Attempts that files, mounts and `/proc` must block. */
export function probeFiles(targets: ProbeTargets): ProbeReport[] {
  return [
    probeWrites(),
    probeKernelFiles(),
    probeDeviceNode(),
    probeSetuid(),
    probeCapabilities(),
    probeDescriptors(),
    probeRoots(),
    probeForeignFiles(targets),
    probeTemporaryBytes(),
    probeTemporaryFiles(),
  ]
}

/** Writes until the disk is full or `maxBytes` are written; returns how many were written. */
export function fill(folder: string, maxBytes: number): number {
  const chunk = new Uint8Array(1024 ** 2).fill(1)
  let written = 0
  for (let file = 0; written < maxBytes; file += 1) {
    try {
      const fd = openSync(`${folder}/.fill-${file}`, 'wx')
      try {
        for (let part = 0; part < 8 && written < maxBytes; part += 1) written += writeSync(fd, chunk)
      } finally {
        closeSync(fd)
      }
    } catch {
      // Full.
      return written
    }
  }
  return written
}
