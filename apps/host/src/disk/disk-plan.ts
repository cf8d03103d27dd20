const MEBIBYTE = 1024 ** 2

/** Default of the reserve: this much, or a share of a small disk. */
const DEFAULT_RESERVE_BYTES = 256 * MEBIBYTE
const DEFAULT_RESERVE_SHARE = 0.05
/** Kept free beside the reserve, for what control and supervisors write between two polls. */
const HEADROOM = { minBytes: 4 * MEBIBYTE, maxBytes: 32 * MEBIBYTE, share: 0.01 }
/** A new sandbox needs this much for files. */
const MAX_NEW_SANDBOX_BYTES = 16 * MEBIBYTE
/** Largest part of the reserve that is released at once: another program may be filling the disk. */
const RELEASE_SHARE = 1 / 8
/** What the others cannot take from a running sandbox: it can write until it uses this much. */
const ENTITLED_BYTES = 256 * MEBIBYTE

/** The disk of the data folder as `statfs` reports it. */
export interface DiskSpace {
  readonly totalBytes: number
  /** Available to this user. */
  readonly freeBytes: number
}

/** `ok`: sandboxes can be created. `low`: they cannot, and those that run get little space. `full`: control uses its reserve. */
export type DiskStatus = 'ok' | 'low' | 'full'

/** Amounts that depend on the size of the disk. */
export interface DiskAmounts {
  readonly reserveBytes: number
  readonly headroomBytes: number
  readonly newSandboxBytes: number
}

export function planAmounts(totalBytes: number, reserveBytes?: number): DiskAmounts {
  const { minBytes, maxBytes, share } = HEADROOM
  const headroomBytes = Math.min(maxBytes, Math.max(minBytes, Math.floor(totalBytes * share)))
  const standard = Math.min(DEFAULT_RESERVE_BYTES, Math.floor(totalBytes * DEFAULT_RESERVE_SHARE))
  return {
    reserveBytes: reserveBytes ?? standard,
    headroomBytes,
    newSandboxBytes: Math.min(MAX_NEW_SANDBOX_BYTES, headroomBytes),
  }
}

/** Bytes that sandboxes may still take. Negative when the reserve is incomplete. */
export function availableBytes(
  { freeBytes }: DiskSpace,
  { reserveBytes, headroomBytes }: DiskAmounts,
  heldBytes: number,
): number {
  return freeBytes - headroomBytes - (reserveBytes - heldBytes)
}

/** The size that the reserve should have now: smaller when the disk is full, whole again when there is space. */
export function planReserve(
  { freeBytes }: DiskSpace,
  { reserveBytes, headroomBytes }: DiskAmounts,
  heldBytes: number,
): number {
  if (heldBytes > reserveBytes) return reserveBytes
  const wantedBytes = headroomBytes / 2 - freeBytes
  if (wantedBytes > 0)
    return heldBytes - Math.min(Math.ceil(wantedBytes), Math.ceil(heldBytes * RELEASE_SHARE))
  return Math.min(reserveBytes, heldBytes + Math.max(0, freeBytes - headroomBytes))
}

/** The disk image of a running sandbox. */
export interface MountedImage {
  readonly id: string
  /** Size of its file system. */
  readonly sizeBytes: number
  /** Taken from the data disk. */
  readonly allocatedBytes: number
  /** Free in its file system, whether or not its processes may use it. */
  readonly freeBytes: number
}

/** What an image will take from the data disk without another write: cached data, preallocated files, tables of the file system. */
export function pendingBytes({ sizeBytes, freeBytes, allocatedBytes }: MountedImage): number {
  return Math.max(0, sizeBytes - freeBytes - allocatedBytes)
}

/** Bytes that may be promised to running sandboxes; negative when too much was promised already. */
export function roomFor(bytes: number, images: readonly MountedImage[]): number {
  return images.reduce((room, image) => room - pendingBytes(image), bytes)
}

/** Divides an amount so that no share is larger than wanted, and the smallest shares are as large as possible. */
function divide(amount: number, wanted: readonly number[]): number[] {
  const shares = wanted.map(() => 0)
  const order = [...wanted.keys()].sort((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0))
  let left = Math.max(0, amount)
  for (const [index, at] of order.entries()) {
    const share = Math.min(wanted[at] ?? 0, Math.floor(left / (order.length - index)))
    shares[at] = share
    left -= share
  }
  return shares
}

/**
 * How much each running sandbox may write until the next poll, in the order of `images`. The sum is never more than the room,
 * so the data disk cannot be filled however fast they write. Sandboxes that use little come first.
 */
export function shareGrowth(room: number, images: readonly MountedImage[]): readonly number[] {
  const entitled = divide(
    room,
    images.map(({ sizeBytes, freeBytes }) =>
      Math.min(freeBytes, Math.max(0, ENTITLED_BYTES - (sizeBytes - freeBytes))),
    ),
  )
  const left = entitled.reduce((rest, share) => rest - share, room)
  const more = divide(
    left,
    images.map(({ freeBytes }, index) => freeBytes - (entitled[index] ?? 0)),
  )
  return entitled.map((share, index) => share + (more[index] ?? 0))
}

/** What `/readyz` reports. */
export function diskStatus(
  { freeBytes }: DiskSpace,
  { headroomBytes }: DiskAmounts,
  canAdmit: boolean,
): DiskStatus {
  if (freeBytes < headroomBytes / 2) return 'full'
  return canAdmit ? 'ok' : 'low'
}

/** Bytes per inode, and of the largest journal, in ext4. */
const INODE_BYTES = 256
const MAX_JOURNAL_BYTES = 1024 ** 3

/** Upper bound of what a new file system uses for itself: inodes, journal, bitmaps. */
export function newImageBytes(diskBytes: number, inodes: number): number {
  const own = Math.min(MAX_JOURNAL_BYTES, diskBytes / 32) + 16 * MEBIBYTE + inodes * INODE_BYTES
  return Math.min(diskBytes, Math.ceil(own))
}
