import { closeSync, openSync, writeFileSync } from 'node:fs'
import type { SandboxLimits } from '@sandwire/internal'
import { inodesFor } from '../../isolation/disk-image.ts'
import { report, type ProbeReport } from '../probe-report.ts'
import { fill } from './file-probes.ts'

/** How much more than allowed is tried. */
const EXCESS = 2
/** Terminals and descriptors that nobody needs in one sandbox. */
const MANY_TERMINALS = 256
const MANY_DESCRIPTORS = 6_000
const BURN_MS = 1_500
/** How long a watchdog may take to see a full disk. */
const WATCHDOG_MS = 8_000

/** Runs this program again to take memory, since it does not survive. */
function probeMemory(limits: SandboxLimits, self: readonly string[]): ProbeReport {
  const bytes = limits.memoryBytes * EXCESS
  const hog = Bun.spawnSync([...self, 'hog', String(bytes)], { stdout: 'pipe', stderr: 'ignore' })
  if (hog.stdout.toString().includes('took'))
    return report('memory-limit', 'failed', 'could take twice its memory')
  return report('memory-limit', 'ok', 'a process that takes more than its memory is ended, the others go on')
}

/** Takes memory and keeps it; says so if it still lives. */
export async function takeMemory(bytes: number): Promise<void> {
  const held: Uint8Array[] = []
  const chunk = 16 * 1024 ** 2
  for (let taken = 0; taken < bytes; taken += chunk) {
    held.push(new Uint8Array(chunk).fill(taken / chunk))
    // A watchdog looks only now and then.
    await Bun.sleep(20)
  }
  await Bun.sleep(1_500)
  process.stdout.write(`took ${held.length}\n`)
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
    : report('terminal-limit', 'weak', `could open ${opened} terminals, which all sandboxes share`)
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
  const line = `four busy processes got ${share.toFixed(2)} processors of ${limits.milliCpus / 1000}`
  return report('processor-limit', share < (limits.milliCpus / 1000) * 1.5 ? 'ok' : 'weak', line)
}

/** Tries to take more than its share of everything but disk. */
export async function probeLimits(limits: SandboxLimits, self: readonly string[]): Promise<ProbeReport[]> {
  return [
    await probePids(limits),
    probeTerminals(),
    probeDescriptors(),
    await probeProcessor(limits),
    probeMemory(limits, self),
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
    ? report('file-limit', 'ok', `could make no more than ${made} files`)
    : report('file-limit', 'weak', `could make ${made} files before anybody looked`)
}

/** Fills the disk, which ends the sandbox where a watchdog guards it; nothing is said then. */
export async function probeDisk(folder: string, limits: SandboxLimits): Promise<ProbeReport[]> {
  const inodes = probeInodes(folder, limits)
  const written = fill(folder, limits.diskBytes * EXCESS)
  if (written <= limits.diskBytes)
    return [inodes, report('disk-limit', 'ok', 'cannot write more than its disk')]
  await Bun.sleep(WATCHDOG_MS)
  return [inodes, report('disk-limit', 'failed', 'could write twice its disk')]
}
