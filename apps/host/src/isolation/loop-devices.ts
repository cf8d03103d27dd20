import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Whether a file is the content of a loop device now: mounted, or just about not to be any more. */
export function isAttached(file: string): boolean {
  return readdirSync('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .some((name) => backingFileOf(name) === file)
}

function backingFileOf(device: string): string | undefined {
  try {
    return readFileSync(`/sys/block/${device}/loop/backing_file`, 'utf8').trimEnd()
  } catch {
    // Devices without a file have no such entry.
    return undefined
  }
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
