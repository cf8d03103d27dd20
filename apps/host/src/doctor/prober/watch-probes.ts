import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { type ProbeTargets, type ProbeReport, report } from '../probe-protocol.ts'
import { cString, systemCall } from './system-call.ts'

const IS_ARM = process.arch === 'arm64'
const SYS_INOTIFY_INIT1 = IS_ARM ? 26 : 294
const SYS_INOTIFY_ADD_WATCH = IS_ARM ? 27 : 254
const SYS_FLOCK = IS_ARM ? 32 : 73
const NONBLOCKING = 0o4000
const IN_OPEN = 0x20
const LOCK_EXCLUSIVE_NOW = 2 | 4
/** Longer than the interval at which the file is used outside. */
const WATCH_MS = 500

/** True when another process opens the file while this one watches it. */
async function seesUse(file: string): Promise<boolean> {
  const fd = systemCall(SYS_INOTIFY_INIT1, NONBLOCKING)
  if (fd < 0) return false
  try {
    if (systemCall(SYS_INOTIFY_ADD_WATCH, fd, cString(file), IN_OPEN) < 0) return false
    await Bun.sleep(WATCH_MS)
    return readSync(fd, new Uint8Array(4096)) > 0
  } catch {
    // EAGAIN: nothing happened.
    return false
  } finally {
    closeSync(fd)
  }
}

async function probeWatches({ used }: ProbeTargets): Promise<ProbeReport[]> {
  const seen = new Set<string>()
  for (const file of used) if (await seesUse(file)) seen.add(file)
  const devices = used.filter((file) => file.startsWith('/dev/'))
  const files = used.filter((file) => !devices.includes(file))
  const describe = (name: string, what: string, watched: readonly string[]): ProbeReport => {
    const shown = watched.filter((file) => seen.has(file)).join(', ')
    return shown === ''
      ? report(name, 'ok', `sees no use of ${watched.join(', ')} by this machine`)
      : // What is used is seen, but no content, and nothing can be changed.
        report(name, 'weak', `sees when this machine and other sandboxes use ${what}: ${shown}`)
  }
  return [describe('watch-files', 'system files', files), describe('watch-devices', 'devices', devices)]
}

function probeLock({ locked }: ProbeTargets): ProbeReport {
  const fd = openSync(locked, 'r')
  try {
    return systemCall(SYS_FLOCK, fd, LOCK_EXCLUSIVE_NOW) < 0
      ? report('file-locks', 'weak', `shares locks on ${locked} with this machine and other sandboxes`)
      : report('file-locks', 'ok', `shares no lock on ${locked} with this machine`)
  } finally {
    closeSync(fd)
  }
}

function probeMountTable({ folder }: ProbeTargets): ProbeReport {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  const revealing = mounts.filter((line) => line.includes(folder)).map((line) => line.split(' ')[4] ?? '')
  return revealing.length === 0
    ? report('mount-table', 'ok', 'does not see the path of the data folder in its mount table')
    : report('mount-table', 'weak', `sees the path of the data folder in the mounts ${revealing.join(', ')}`)
}

const MACHINE_FILES = ['diskstats', 'partitions', 'interrupts', 'key-users']
const MACHINE_FOLDERS = ['fs', 'irq']

function probeMachineDevices(): ProbeReport {
  const shown = [
    ...MACHINE_FILES.filter((name) => readIfPresent(`/proc/${name}`) !== ''),
    ...MACHINE_FOLDERS.filter((name) => listIfPresent(`/proc/${name}`).length > 0),
  ].map((name) => `/proc/${name}`)
  return shown.length === 0
    ? report('machine-devices', 'ok', 'does not see disks and interrupts of this machine in /proc')
    : report('machine-devices', 'weak', `sees activity of this machine's devices in ${shown.join(', ')}`)
}

function readIfPresent(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Absent or refused.
    return ''
  }
}

function listIfPresent(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    // Absent or refused.
    return []
  }
}

/** Attempts to observe this machine and other sandboxes. */
export async function probeWatching(targets: ProbeTargets): Promise<ProbeReport[]> {
  return [
    ...(await probeWatches(targets)),
    probeLock(targets),
    probeMountTable(targets),
    probeMachineDevices(),
  ]
}
