import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { SYSTEM_ENV } from './system-env.ts'

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
 * Lets what is written to the file system in a file go around the machine's cache, since there is one above it already: each
 * byte is copied once less and held once. Not every file system can; then all stays as it is.
 */
export async function bypassCache(file: string): Promise<void> {
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
