import { existsSync, readdirSync, statfsSync, statSync } from 'node:fs'
import path from 'node:path'
import {
  DEFAULT_SANDBOX_LIMITS,
  DISK_FULL,
  type HostHealth,
  type SandboxLimits,
} from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { FullDisk } from '../data/folder-problem.ts'
import { inodesFor, listAttachedFiles, readImageId } from '../isolation/disk-image.ts'
import { describeCause, type Log } from '../log.ts'
import type { DiskSettings } from '../settings/disk.ts'
import {
  availableBytes,
  type DiskAmounts,
  type DiskSpace,
  type DiskStatus,
  diskStatus,
  type MountedImage,
  newImageBytes,
  planAmounts,
  planReserve,
  roomFor,
  shareGrowth,
} from './disk-plan.ts'
import { type ImageMount, limitGrowth, measureImage, measureStoppedImage } from './image-growth.ts'
import { ReserveFile } from './reserve-file.ts'

const POLL_MS = 1_000
/** A sandbox that runs. */
export interface RunningSandbox {
  readonly id: string
  readonly daemonPid: number
}

export interface DiskGuardOptions {
  readonly dataFolder: string
  /** The file that holds the reserve. */
  readonly reserveFile: string
  readonly settings: DiskSettings
  /** True when sandboxes have disk images. */
  readonly hasImages: boolean
  /** Path of a sandbox's disk image, whether or not it has one. */
  readonly imageOf: (id: string) => string
  readonly listRunning: () => readonly RunningSandbox[]
  readonly log: Log
}

/** A sandbox that is about to start. */
export interface StartingSandbox {
  readonly id: string
  readonly limits: Pick<SandboxLimits, 'diskBytes'>
}

/** Space for a sandbox that starts, until disposed. */
export interface Admission extends Disposable {
  /** How much it may write until the guard sees it running; absent without a disk image. */
  readonly growthBytes?: number
}

function newImage(id: string, diskBytes: number): MountedImage {
  const usedBytes = newImageBytes(diskBytes, inodesFor(diskBytes))
  return { id, sizeBytes: diskBytes, allocatedBytes: 0, freeBytes: diskBytes - usedBytes }
}

/** What everyone may write when one more sandbox runs. */
function divideRoom(available: number, others: readonly MountedImage[], own: MountedImage) {
  const all = [...others, own]
  const room = roomFor(available, all)
  const shares = shareGrowth(room, all)
  return { room, shares, growthBytes: shares.at(-1) ?? 0 }
}

/** `mount` is absent while the sandbox starts. */
type MeasuredImage = MountedImage & { readonly mount?: ImageMount }

/** Keeps space on the data disk for control, and divides the rest among running sandboxes. */
export class DiskGuard {
  readonly #options: DiskGuardOptions
  readonly #reserve: ReserveFile
  readonly #amounts: DiskAmounts
  /** Sandboxes that were admitted and may not be in `listRunning` yet. */
  readonly #starting = new Map<string, MountedImage>()
  readonly #timer: Timer
  #status: DiskStatus = 'ok'
  /** False when the kernel does not let this process limit images: each then counts with its whole size. */
  #canLimit = true
  /** Result of the last look at images; they are looked at again when space could become scarce. */
  #last: { readonly sizeBytes: number; readonly isScarce: boolean } = { sizeBytes: 0, isScarce: true }

  constructor(options: DiskGuardOptions) {
    this.#options = options
    this.#reserve = new ReserveFile(options.reserveFile)
    this.#amounts = planAmounts(this.#space.totalBytes, options.settings.reserveBytes)
    this.poll()
    this.#timer = setInterval(() => this.poll(), POLL_MS)
  }

  get health(): NonNullable<HostHealth['disk']> {
    return { status: this.#status, freeBytes: this.#space.freeBytes, reserveBytes: this.#reserve.bytes }
  }

  /**
   * Reserves space for a sandbox that starts, taken from what the others may still write. Throws when there is none: for a new
   * sandbox when less than its file system needs is left, or too much is promised; otherwise only when the disk is full.
   */
  admit({ id, limits }: StartingSandbox): Admission {
    const available = this.#available
    if (!this.#options.hasImages) {
      if (this.#space.freeBytes < this.#amounts.headroomBytes / 2) throw this.#full()
      return { [Symbol.dispose]: () => undefined }
    }
    const image = this.#options.imageOf(id)
    // A damaged image is replaced by a new one.
    const isNew = readImageId(image) === undefined
    const others = this.#measure().filter((each) => each.id !== id)
    const own = isNew ? newImage(id, limits.diskBytes) : measureStoppedImage(id, image)
    const { room, shares, growthBytes } = divideRoom(available, others, own)
    // A sandbox with files starts even if it can write nothing more: its user may want to delete some.
    const fits = isNew ? this.#fits(available, growthBytes, own) : room >= -this.#amounts.headroomBytes / 2
    if (!fits) throw this.#full()
    // Counts as used, so that no poll gives it to others.
    this.#starting.set(id, { ...own, sizeBytes: own.sizeBytes - own.freeBytes + growthBytes, freeBytes: 0 })
    this.#limit(others, shares)
    this.#last = { ...this.#last, isScarce: true }
    // What a new file system uses for itself is an estimate: a sandbox that gets all that is left of its disk is not limited.
    const isWhole = isNew && growthBytes === own.freeBytes
    return {
      growthBytes: isWhole ? own.sizeBytes : growthBytes,
      [Symbol.dispose]: () => void this.#starting.delete(id),
    }
  }

  /** Throws when a file of this size in the folder would take the space that another sandbox needs. Other disks are not guarded. */
  admitFile(folder: string, sizeBytes: number): void {
    if (statSync(folder).dev !== statSync(this.#options.dataFolder).dev) return
    if (this.#hasSpaceForAnother(this.#available - sizeBytes)) return
    throw new SandwireError('disk_full', `Cannot store a file: ${DISK_FULL}`)
  }

  /** Adjusts the reserve, and what running sandboxes may write. */
  poll(): void {
    try {
      this.#poll()
    } catch (error) {
      this.#options.log.error('disk_guard_failed', { cause: describeCause(error) })
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#reserve[Symbol.dispose]()
  }

  #poll(): void {
    const heldBefore = this.#reserve.bytes
    const wanted = planReserve(this.#space, this.#amounts, heldBefore)
    const heldBytes = wanted === heldBefore ? heldBefore : this.#reserve.resize(wanted)
    const canAdmit = this.#share(this.#available)
    const space = this.#space
    const status = diskStatus(space, this.#amounts, canAdmit)
    if (status === this.#status) return
    this.#status = status
    const fields = { disk: status, free_bytes: space.freeBytes, reserve_bytes: heldBytes }
    if (status === 'ok') this.#options.log.info('disk', fields)
    else this.#options.log.warn('disk', fields)
  }

  /** Divides the available bytes among running sandboxes; true when another one fits. */
  #share(available: number): boolean {
    if (!this.#options.hasImages || this.#isPlenty(available)) return this.#hasSpaceForAnother(available)
    const images = this.#measure()
    this.#limit(images, shareGrowth(roomFor(available, images), images))
    return this.#hasSpaceForAnother(available, images)
  }

  /** True when another sandbox fits into the available bytes. */
  #hasSpaceForAnother(available: number, measured?: readonly MountedImage[]): boolean {
    if (!this.#options.hasImages) return available >= this.#amounts.newSandboxBytes
    if (measured === undefined && this.#isPlenty(available)) return true
    const another = this.#another
    const images = measured ?? this.#measure()
    return this.#fits(available, divideRoom(available, images, another).growthBytes, another)
  }

  /** True when it is enough even if every sandbox fills its disk. */
  #isPlenty(available: number): boolean {
    const { sizeBytes, isScarce } = this.#last
    return !isScarce && available > sizeBytes + this.#another.sizeBytes
  }

  /** A sandbox with default limits, on a smaller disk of its size. */
  get #another(): MountedImage {
    return newImage('', Math.min(DEFAULT_SANDBOX_LIMITS.diskBytes, this.#space.totalBytes))
  }

  /** True when a new sandbox that could write this much fits, and its whole disk is within what may be promised. */
  #fits(available: number, growthBytes: number, { sizeBytes, freeBytes }: MountedImage): boolean {
    const { overcommit } = this.#options.settings
    return (
      // A small disk cannot take as much.
      growthBytes >= Math.min(this.#amounts.newSandboxBytes, freeBytes) &&
      this.#promisedBytes() + sizeBytes <= available * overcommit
    )
  }

  get #available(): number {
    return availableBytes(this.#space, this.#amounts, this.#reserve.bytes)
  }

  get #space(): DiskSpace {
    const { blocks, bavail, bsize } = statfsSync(this.#options.dataFolder)
    return { totalBytes: blocks * bsize, freeBytes: bavail * bsize }
  }

  #mounts(): readonly ImageMount[] {
    const devices = listAttachedFiles()
    return this.#options.listRunning().flatMap(({ id, daemonPid }) => {
      const image = this.#options.imageOf(id)
      const device = devices.get(image)
      return device === undefined ? [] : [{ id, image, device, pid: daemonPid }]
    })
  }

  /** The images of running and starting sandboxes. */
  #measure(): readonly MeasuredImage[] {
    const running = this.#mounts().flatMap((mount) => {
      try {
        const measured = measureImage(mount)
        return [{ ...measured, ...(!this.#canLimit && { freeBytes: 0 }), mount }]
      } catch {
        // It stopped meanwhile.
        return []
      }
    })
    const ids = new Set(running.map(({ id }) => id))
    return [...running, ...[...this.#starting.values()].filter(({ id }) => !ids.has(id))]
  }

  #limit(images: readonly MeasuredImage[], shares: readonly number[]): void {
    for (const [index, { mount }] of images.entries())
      if (mount !== undefined) this.#limitOne(mount, shares[index] ?? 0)
    this.#last = {
      sizeBytes: images.reduce((sum, image) => sum + image.sizeBytes, 0),
      isScarce: images.some(({ freeBytes }, index) => (shares[index] ?? 0) < freeBytes),
    }
  }

  #limitOne(mount: ImageMount, bytes: number): void {
    try {
      limitGrowth(mount, bytes)
    } catch (error) {
      // It stopped meanwhile, or /sys is read-only.
      if (!this.#canLimit || !existsSync(`/sys/fs/ext4/${mount.device}`)) return
      this.#canLimit = false
      this.#options.log.warn('disk_growth_unlimited', { cause: describeCause(error) })
    }
  }

  /** What the images of all sandboxes may still take. */
  #promisedBytes(): number {
    const folder = path.dirname(this.#options.imageOf(''))
    if (!existsSync(folder)) return 0
    return readdirSync(folder)
      .filter((name) => name.endsWith('.ext4'))
      .map((name) => statSync(path.join(folder, name), { throwIfNoEntry: false }))
      .reduce((sum, found) => sum + (found === undefined ? 0 : found.size - found.blocks * 512), 0)
  }

  #full(): SandwireError {
    return new SandwireError('sandbox_failed', `Cannot start the sandbox: ${DISK_FULL}`, {
      cause: new FullDisk(this.#options.dataFolder),
    })
  }
}
