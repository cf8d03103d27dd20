import {
  accessSync,
  closeSync,
  constants,
  openSync,
  readFileSync,
  readSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { INSIDE } from '../isolation/isolation.ts'
import type { MountedImage } from './disk-plan.ts'

/** ext4 keeps this many clusters to itself by default: 2 %, at most 4096. */
const OWN_CLUSTERS = { share: 50, max: 4096 }

/** True when this process may change settings of mounted ext4 file systems; in a container `/sys` is often read-only. */
export function canLimitGrowth(): boolean {
  try {
    accessSync('/sys/fs', constants.W_OK)
    return true
  } catch {
    // Mounted read-only.
    return false
  }
}

/** A mounted image: the file, its loop device, and a process that has it mounted as its workspace. */
export interface ImageMount {
  readonly id: string
  readonly image: string
  readonly device: string
  readonly pid: number
}

function workspaceOf(pid: number): string {
  return `/proc/${pid}/root${INSIDE.workspace}`
}

/** Measures a mounted image. Throws when it is not mounted any more. */
export function measureImage({ id, image, pid }: ImageMount): MountedImage {
  const { size, blocks } = statSync(image)
  const { bfree, bsize } = statfsSync(workspaceOf(pid))
  return { id, sizeBytes: size, allocatedBytes: blocks * 512, freeBytes: bfree * bsize }
}

/** ext4's superblock (https://docs.kernel.org/filesystems/ext4/super.html): its place, and the fields that are read. */
const SUPERBLOCK = { offset: 1024, bytes: 1024, free: 0x0c, logBlockSize: 0x18, freeHigh: 0x158 }

/** Measures an image that is not mounted. */
export function measureStoppedImage(id: string, image: string): MountedImage {
  const { size, blocks } = statSync(image)
  const header = Buffer.alloc(SUPERBLOCK.bytes)
  const fd = openSync(image, 'r')
  try {
    readSync(fd, header, 0, header.length, SUPERBLOCK.offset)
  } finally {
    closeSync(fd)
  }
  const free = header.readUInt32LE(SUPERBLOCK.free) + header.readUInt32LE(SUPERBLOCK.freeHigh) * 2 ** 32
  const blockBytes = 1024 * 2 ** header.readUInt32LE(SUPERBLOCK.logBlockSize)
  const freeBytes = Math.min(size, free * blockBytes)
  return { id, sizeBytes: size, allocatedBytes: blocks * 512, freeBytes }
}

function reservedFile(device: string): string {
  return `/sys/fs/ext4/${device}/reserved_clusters`
}

/**
 * Lets the processes of a sandbox allocate this many bytes more; then their writes fail with ENOSPC. Files can still be
 * overwritten and deleted. ext4 withholds reserved clusters from every writer, and an unmount forgets them.
 */
export function limitGrowth({ device, pid }: Pick<ImageMount, 'device' | 'pid'>, bytes: number): void {
  const { blocks, bfree, bsize } = statfsSync(workspaceOf(pid))
  const own = Math.min(OWN_CLUSTERS.max, Math.floor(blocks / OWN_CLUSTERS.share))
  const reserved = Math.max(own, bfree - Math.floor(bytes / bsize))
  const file = reservedFile(device)
  if (Number(readFileSync(file, 'utf8')) !== reserved) writeFileSync(file, String(reserved))
}
