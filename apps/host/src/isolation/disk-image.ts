import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import path from 'node:path'
import type { SandboxIds } from './sandbox-folders.ts'
import { runTool, SYSTEM_ENV } from './system-tools.ts'

/** Bytes of a disk per file it can hold, and the least and most files: small disks hold sources, large ones data. */
const BYTES_PER_INODE = 10_240
const INODES = { min: 512, max: 2_000_000 }

/** How many files a disk of this size holds. */
export function inodesFor(diskBytes: number): number {
  return Math.min(INODES.max, Math.max(INODES.min, Math.floor(diskBytes / BYTES_PER_INODE)))
}

/** Makes the file system of a sandbox, with `workspace` and `home` in it, unless it exists. Takes no space yet. */
export async function ensureDiskImage(image: string, diskBytes: number, ids: SandboxIds): Promise<void> {
  if (existsSync(image)) return
  mkdirSync(path.dirname(image), { recursive: true, mode: 0o700 })
  const made = mkdtempSync(`${image}.`)
  try {
    const content = path.join(made, 'content')
    for (const name of ['workspace', 'home']) {
      mkdirSync(path.join(content, name), { recursive: true, mode: 0o755 })
      chownSync(path.join(content, name), ids.user, ids.user)
    }
    const unfinished = path.join(made, 'image')
    const options = 'lazy_itable_init=1,lazy_journal_init=1,nodiscard'
    await runTool([
      'mkfs.ext4',
      '-q',
      '-F',
      '-m',
      '0',
      '-E',
      options,
      '-N',
      String(inodesFor(diskBytes)),
      '-d',
      content,
      unfinished,
      `${Math.floor(diskBytes / 1024)}k`,
    ])
    // In one step, so that an interrupted start leaves no half image.
    renameSync(unfinished, image)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

/** Whether a file is the content of a loop device now: mounted, or just about not to be any more. */
export function isAttached(file: string): boolean {
  return findDevice(file) !== undefined
}

function findDevice(file: string): string | undefined {
  return readdirSync('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .find((name) => backingFileOf(name) === file)
}

function backingFileOf(device: string): string | undefined {
  try {
    return readFileSync(`/sys/block/${device}/loop/backing_file`, 'utf8').trimEnd()
  } catch {
    // Devices without a file have no such entry.
    return undefined
  }
}

/**
 * Lets what is written to the file system in a file go context the machine's cache, since there is one above it already: each
 * byte is copied once less and held once. Not every file system can; then all stays as it is.
 */
export async function enableDirectIo(file: string): Promise<void> {
  const device = findDevice(file)
  if (device === undefined) return
  const argv = ['losetup', '--direct-io=on', `/dev/${device}`]
  await Bun.spawn(argv, { env: SYSTEM_ENV, stdio: ['ignore', 'ignore', 'ignore'] }).exited
}

/** Whether this machine can make file systems of files. Only root may. */
export function hasLoopDevices(isRoot: boolean): boolean {
  return (
    isRoot &&
    existsSync('/dev/loop-control') &&
    existsSync('/sys/block') &&
    Bun.which('mkfs.ext4', { PATH: '/usr/sbin:/sbin:/usr/bin' }) !== null
  )
}
