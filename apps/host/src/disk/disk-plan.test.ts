import { describe, expect, test } from 'bun:test'
import {
  availableBytes,
  diskStatus,
  type MountedImage,
  newImageBytes,
  pendingBytes,
  planAmounts,
  planReserve,
  roomFor,
  shareGrowth,
} from './disk-plan.ts'

const MEBIBYTE = 1024 ** 2
const GIBIBYTE = 1024 ** 3

function image(id: string, changes: Partial<MountedImage> = {}): MountedImage {
  return {
    id,
    sizeBytes: 2 * GIBIBYTE,
    allocatedBytes: 120 * MEBIBYTE,
    freeBytes: 2 * GIBIBYTE - 120 * MEBIBYTE,
    ...changes,
  }
}

describe('the reserve', () => {
  const amounts = planAmounts(100 * GIBIBYTE)
  const { reserveBytes, headroomBytes } = amounts
  const disk = (freeBytes: number) => ({ totalBytes: 100 * GIBIBYTE, freeBytes })

  test('is 256 MiB, at most a twentieth of the disk, or as configured', () => {
    expect(reserveBytes).toBe(256 * MEBIBYTE)
    expect(planAmounts(1_000_000).reserveBytes).toBe(50_000)
    expect(planAmounts(1_000_000, 7).reserveBytes).toBe(7)
  })

  test('is taken as far as there is space', () => {
    expect(planReserve(disk(GIBIBYTE), amounts, 0)).toBe(reserveBytes)
    expect(planReserve(disk(headroomBytes + 5), amounts, 10)).toBe(15)
    expect(planReserve(disk(headroomBytes), amounts, 10)).toBe(10)
    expect(planReserve(disk(GIBIBYTE), amounts, reserveBytes + 1)).toBe(reserveBytes)
  })

  test('is released in parts of what is left, so that another program does not use it up', () => {
    let heldBytes = reserveBytes
    for (let poll = 0; poll < 10; poll += 1) {
      const next = planReserve(disk(0), amounts, heldBytes)
      expect(next).toBeLessThan(heldBytes)
      heldBytes = next
    }
    expect(heldBytes).toBeGreaterThan(reserveBytes / 5)
    expect(planReserve(disk(0), amounts, 0)).toBe(0)
  })

  test('is not available to sandboxes, nor is what it lacks', () => {
    expect(availableBytes(disk(GIBIBYTE), amounts, reserveBytes)).toBe(GIBIBYTE - headroomBytes)
    expect(availableBytes(disk(GIBIBYTE), amounts, 0)).toBe(GIBIBYTE - headroomBytes - reserveBytes)
    expect(availableBytes(disk(0), amounts, 0)).toBeLessThan(0)
  })

  test('makes the disk full, or low when no sandbox fits', () => {
    expect(diskStatus(disk(GIBIBYTE), amounts, true)).toBe('ok')
    expect(diskStatus(disk(GIBIBYTE), amounts, false)).toBe('low')
    expect(diskStatus(disk(0), amounts, true)).toBe('full')
  })
})

describe('the growth of images', () => {
  test('includes what their file systems have used and not written', () => {
    expect(pendingBytes(image('a'))).toBe(0)
    const preallocated = image('a', { freeBytes: GIBIBYTE, allocatedBytes: 200 * MEBIBYTE })
    expect(pendingBytes(preallocated)).toBe(GIBIBYTE - 200 * MEBIBYTE)
    expect(roomFor(GIBIBYTE, [preallocated, image('b')])).toBe(200 * MEBIBYTE)
  })

  test('is not limited while there is space for all', () => {
    const images = [image('a'), image('b')]
    expect(shareGrowth(10 * GIBIBYTE, images)).toEqual(images.map(({ freeBytes }) => freeBytes))
  })

  test('is never more than the room', () => {
    const images = [image('a'), image('b', { freeBytes: 100 }), image('c', { freeBytes: GIBIBYTE })]
    for (const room of [-5, 0, 1, 2, 299, 300, MEBIBYTE, 700 * MEBIBYTE, 3 * GIBIBYTE]) {
      const shares = shareGrowth(room, images)
      expect(shares.reduce((sum, share) => sum + share, 0)).toBeLessThanOrEqual(Math.max(0, room))
      for (const [index, share] of shares.entries())
        expect(share).toBeLessThanOrEqual(images[index]?.freeBytes ?? 0)
    }
    expect(shareGrowth(1000, images)).toEqual([1000, 0, 0])
  })

  test('leaves space to sandboxes that use little', () => {
    const large = image('a', { freeBytes: GIBIBYTE, allocatedBytes: GIBIBYTE })
    const small = image('b')
    const [ofLarge, ofSmall] = shareGrowth(150 * MEBIBYTE, [large, small])
    expect([ofLarge, ofSmall]).toEqual([7 * MEBIBYTE, 143 * MEBIBYTE])
  })
})

// What mkfs.ext4 uses for itself, measured with dumpe2fs.
test.each([
  [64 * MEBIBYTE, 6_554, 6 * MEBIBYTE],
  [512 * MEBIBYTE, 52_429, 31 * MEBIBYTE],
  [2 * GIBIBYTE, 209_715, 122 * MEBIBYTE],
])('a new image of %d bytes needs no more than expected', (diskBytes, inodes, usedBytes) => {
  expect(newImageBytes(diskBytes, inodes)).toBeGreaterThanOrEqual(usedBytes)
  expect(newImageBytes(diskBytes, inodes)).toBeLessThan(diskBytes / 2)
})
