import { existsSync, readFileSync, statfsSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import path from 'node:path'
import type { SandboxLimits } from '@sandwire/internal-api'
import { runningSandboxes, validateCeilingSettings } from '@sandwire/operator-settings'
import type { Configuration } from './configuration.ts'

/** What the kernel allows where it does not say. */
const DEFAULT_PID_MAX = 32_768

/** What this machine can give to sandboxes. */
export interface Machine {
  readonly facts: SandboxLimits & { readonly diskOvercommit: number; readonly storeBytes?: number }
  /** How many sandboxes may run at once; each has a slot. */
  readonly running: number
}

function readPidMax(): number {
  try {
    return Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8')) || DEFAULT_PID_MAX
  } catch {
    // Not visible, as in some containers.
    return DEFAULT_PID_MAX
  }
}

/** Memory of the machine, or of the control group that this process is in. */
function readMemoryBytes(): number {
  const constrained = process.constrainedMemory()
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem()
}

/** Size of the disk that holds a folder, which may not exist yet, without the part that is reserved for root. */
function readDiskBytes(folder: string): number {
  if (!existsSync(folder)) return readDiskBytes(path.dirname(folder))
  const { blocks, bfree, bavail, bsize } = statfsSync(folder)
  return (blocks - bfree + bavail) * bsize
}

/** Reads what this machine has; the files of sandboxes are in the data folder. */
export function readMachine(
  { passed, disk, store }: Pick<Configuration, 'passed' | 'disk' | 'store'>,
  dataFolder: string,
): Machine {
  const facts = {
    memoryBytes: readMemoryBytes(),
    milliCpus: availableParallelism() * 1_000,
    pids: readPidMax(),
    diskBytes: readDiskBytes(dataFolder),
    diskOvercommit: disk.overcommit,
    ...(store !== undefined && 'folder' in store && { storeBytes: readDiskBytes(store.folder) }),
  }
  // Problems were reported when the settings file was read.
  const ceilings = validateCeilingSettings(passed['ceilings'] ?? {}, [])
  return { facts, running: runningSandboxes(ceilings, facts.memoryBytes) }
}
