const MEBIBYTE = 1024 ** 2

/**
 * tmpfs counts as memory of the sandbox and cannot be freed by killing a process: together, with their inodes, they are limited to
 * less than half of it, and to these sizes.
 */
const FOLDERS = [
  { path: '/dev/shm', maxBytes: 64 * MEBIBYTE, share: 1 / 8 },
  { path: '/tmp', maxBytes: 256 * MEBIBYTE, share: 1 / 4 },
]

/** An inode takes about 1 KiB of memory, which the size of a tmpfs does not include. */
const BYTES_PER_INODE = 4096

/** A tmpfs that every process of a sandbox can write to. */
export interface MemoryFolder {
  /** Where the sandbox has it. */
  readonly path: string
  readonly bytes: number
  readonly inodes: number
}

/** The memory folders of a sandbox with this much memory. */
export function planMemoryFolders(memoryBytes: number): MemoryFolder[] {
  return FOLDERS.map(({ path, maxBytes, share }) => {
    const bytes = Math.min(maxBytes, Math.floor(memoryBytes * share))
    return { path, bytes, inodes: Math.ceil(bytes / BYTES_PER_INODE) }
  })
}
