import { copyRange, readFd, seekFd, truncateFd, writeFd } from '../beneath/calls.ts'
import { EINVAL, ENOSYS, ENXIO, EOPNOTSUPP, EPERM, EXDEV } from '../beneath/errno.ts'
import { fileError } from '../beneath/file-error.ts'
import type { Job } from './job.ts'

/** Bytes copied between two pauses. */
const STEP_BYTES = 8 * 1024 * 1024
const BUFFER_BYTES = 1024 * 1024
/** The kernel cannot copy between these two files by itself. */
const BY_HAND: readonly number[] = [-EXDEV, -EINVAL, -EOPNOTSUPP, -ENOSYS, -EPERM]
const SEEK_SET = 0
const SEEK_DATA = 3
const SEEK_HOLE = 4

export interface CopyPlan {
  readonly from: number
  /** Empty, open to write. */
  readonly to: number
  readonly sizeBytes: number
  /** For messages. */
  readonly path: string
}

/** Copies the bytes of a file and leaves out its holes, so that a huge empty file stays a small one. */
export function* copyBytes({ from, to, sizeBytes, path }: CopyPlan): Job<void> {
  let at = 0
  while (at < sizeBytes) {
    const data = seekFd(from, at, SEEK_DATA)
    if (data === -ENXIO) break
    const start = data < 0 ? at : data
    const hole = data < 0 ? sizeBytes : seekFd(from, start, SEEK_HOLE)
    const end = Math.min(hole < 0 ? sizeBytes : hole, sizeBytes)
    seekFd(from, start, SEEK_SET)
    seekFd(to, start, SEEK_SET)
    yield* copyPart({ from, to, path, sizeBytes: end - start })
    at = Math.max(end, at + 1)
  }
  const result = truncateFd(to, sizeBytes)
  if (result < 0) throw fileError('copy', path, result)
}

function* copyPart({ from, to, sizeBytes, path }: CopyPlan): Job<void> {
  let left = sizeBytes
  while (left > 0) {
    const count = copyRange(from, to, Math.min(left, STEP_BYTES))
    if (BY_HAND.includes(count)) return yield* copyByHand({ from, to, path, sizeBytes: left })
    if (count < 0) throw fileError('copy', path, count)
    if (count === 0) return
    left -= count
    yield undefined
  }
}

function* copyByHand({ from, to, sizeBytes, path }: CopyPlan): Job<void> {
  const buffer = new Uint8Array(BUFFER_BYTES)
  let left = sizeBytes
  while (left > 0) {
    const count = readFd(from, buffer.subarray(0, Math.min(left, BUFFER_BYTES)))
    if (count < 0) throw fileError('copy', path, count)
    if (count === 0) return
    for (let at = 0; at < count;) {
      const written = writeFd(to, buffer.subarray(at, count))
      if (written < 0) throw fileError('copy', path, written)
      at += written
    }
    left -= count
    yield undefined
  }
}
