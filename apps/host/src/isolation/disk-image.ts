import {
  chownSync,
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs'
import path from 'node:path'
import { readPrivateFile, writePrivateFile } from '../data/private-file.ts'
import type { SandboxFolders, SandboxIds } from './sandbox-folders.ts'
import { runTool, SYSTEM_ENV } from './system-tools.ts'

/** Disk bytes per inode, and bounds for the number of inodes. */
const BYTES_PER_INODE = 10_240
const INODES = { min: 512, max: 2_000_000 }

/** Number of inodes for a disk of this size. */
export function inodesFor(diskBytes: number): number {
  return Math.min(INODES.max, Math.max(INODES.min, Math.floor(diskBytes / BYTES_PER_INODE)))
}

/** Share of the blocks that only sandboxd can use. */
const RESERVED_PERCENT = 2

/** The superblock of ext4 (https://docs.kernel.org/filesystems/ext4/super.html), and fields in it. */
const SUPERBLOCK = { offset: 1024, bytes: 1024 }
const BLOCKS_LOW = 0x4
const LOG_BLOCK_SIZE = 0x18
const MAGIC = { offset: 0x38, value: 0xef53 }
const UUID = { offset: 0x68, end: 0x78 }
const BLOCKS_HIGH = 0x150

/** UUID of the file system in an image; undefined when it is missing, truncated or none. */
export function readImageId(image: string): string | undefined {
  const block = Buffer.alloc(SUPERBLOCK.bytes)
  let sizeBytes = 0
  try {
    const fd = openSync(image, 'r')
    try {
      readSync(fd, block, 0, SUPERBLOCK.bytes, SUPERBLOCK.offset)
      sizeBytes = fstatSync(fd).size
    } finally {
      closeSync(fd)
    }
  } catch {
    // Missing, or not a file.
    return undefined
  }
  if (block.readUInt16LE(MAGIC.offset) !== MAGIC.value) return undefined
  const blocks = block.readUInt32LE(BLOCKS_HIGH) * 2 ** 32 + block.readUInt32LE(BLOCKS_LOW)
  const isWhole = sizeBytes >= blocks * 1024 * 2 ** block.readUInt32LE(LOG_BLOCK_SIZE)
  return isWhole ? block.toString('hex', UUID.offset, UUID.end) : undefined
}

type ImageFiles = Pick<SandboxFolders, 'image' | 'imageId'>

/** False for an image that is missing or damaged, and for an earlier one that was replaced, as while its disk was not mounted. */
export function isOwnImage({ image, imageId }: ImageFiles): boolean {
  const id = readImageId(image)
  return id !== undefined && id === (readPrivateFile(imageId) ?? id)
}

/** Makes sure that a sandbox has an image of its own. What is in its place is moved into a folder beside it. */
export async function ensureOwnImage(files: ImageFiles, diskBytes: number, ids: SandboxIds): Promise<void> {
  const { image, imageId } = files
  if (existsSync(image) && !isOwnImage(files)) {
    mkdirSync(replacedFolder(image), { recursive: true, mode: 0o700 })
    renameSync(
      image,
      path.join(mkdtempSync(path.join(replacedFolder(image), 'image-')), path.basename(image)),
    )
  }
  await ensureDiskImage(image, diskBytes, ids)
  const id = readImageId(image)
  if (id !== undefined && id !== readPrivateFile(imageId)) {
    mkdirSync(path.dirname(imageId), { recursive: true, mode: 0o700 })
    writePrivateFile(imageId, id)
  }
}

/** Folder of images that were replaced. */
export function replacedFolder(image: string): string {
  return `${image}.replaced`
}

/** Creates the file system of a sandbox, with `workspace`, `home` and `state`, unless it exists. The image is sparse. */
export async function ensureDiskImage(image: string, diskBytes: number, ids: SandboxIds): Promise<void> {
  if (existsSync(image)) return
  removeUnfinishedImage(image)
  mkdirSync(unfinishedFolder(image), { recursive: true, mode: 0o700 })
  // A name of its own: an earlier mkfs.ext4 may still run although its supervisor was killed.
  const made = mkdtempSync(path.join(unfinishedFolder(image), 'mkfs-'))
  try {
    const content = path.join(made, 'content')
    for (const name of ['workspace', 'home']) {
      mkdirSync(path.join(content, name), { recursive: true, mode: 0o755 })
      chownSync(path.join(content, name), ids.user, ids.user)
    }
    mkdirSync(path.join(content, 'state'), { mode: 0o711 })
    chownSync(path.join(content, 'state'), ids.daemon, ids.daemon)
    const unfinished = path.join(made, 'image')
    const options = 'lazy_itable_init=1,lazy_journal_init=1,nodiscard'
    await runTool([
      'mkfs.ext4',
      '-q',
      '-F',
      '-m',
      String(RESERVED_PERCENT),
      '-E',
      options,
      '-N',
      String(inodesFor(diskBytes)),
      '-d',
      content,
      unfinished,
      `${Math.floor(diskBytes / 1024)}k`,
    ])
    // Renamed when complete, so that an interrupted start leaves no partial image.
    renameSync(unfinished, image)
  } finally {
    removeUnfinishedImage(image)
  }
}

function unfinishedFolder(image: string): string {
  return `${image}.unfinished`
}

/** Removes what a killed mkfs.ext4 left. */
export function removeUnfinishedImage(image: string): void {
  rmSync(unfinishedFolder(image), { recursive: true, force: true })
}

/** True while a loop device uses the file: mounted, or being unmounted. */
export function isAttached(file: string): boolean {
  return findDevice(file) !== undefined
}

function listLoopDevices(): string[] {
  return readdirSync('/sys/block').filter((name) => name.startsWith('loop'))
}

function findDevice(file: string): string | undefined {
  return listLoopDevices().find((name) => backingFileOf(name) === file)
}

/** Loop devices by the file that they use. */
export function listAttachedFiles(): ReadonlyMap<string, string> {
  return new Map(
    listLoopDevices().flatMap((device) => {
      const file = backingFileOf(device)
      return file === undefined ? [] : [[file, device] as const]
    }),
  )
}

/** The loop device of a file. Throws when it has none. */
export function deviceOf(file: string): string {
  const device = findDevice(file)
  if (device === undefined) throw new Error(`Cannot find the loop device of "${file}": it has none`)
  return device
}

/** The device number of a file's loop device, as `MAJOR:MINOR`. */
export function deviceNumberOf(file: string): string {
  return readFileSync(`/sys/block/${deviceOf(file)}/dev`, 'utf8').trim()
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
 * Enables direct I/O for the loop device of an image, because the file system above it has a page cache already. Does nothing
 * where the underlying file system does not support it.
 */
export async function enableDirectIo(file: string): Promise<void> {
  const device = findDevice(file)
  if (device === undefined) return
  const argv = ['losetup', '--direct-io=on', `/dev/${device}`]
  await Bun.spawn(argv, { env: SYSTEM_ENV, stdio: ['ignore', 'ignore', 'ignore'] }).exited
}

/** True when this machine supports loop devices. Needs root. */
export function hasLoopDevices(isRoot: boolean): boolean {
  return (
    isRoot &&
    existsSync('/dev/loop-control') &&
    existsSync('/sys/block') &&
    Bun.which('mkfs.ext4', { PATH: '/usr/sbin:/sbin:/usr/bin' }) !== null
  )
}
