import { SandwireError } from '@sandwire/protocol'
import { sandboxIdOfRun } from '@sandwire/internal-api'
import { readToEnd } from '../http/read-bounded.ts'
import type { SegmentStore } from '../versions/segment-store.ts'
import type { RunStore } from './store.ts'

/** Larger diffs go to the store of versions, if there is one. */
const MAX_DATABASE_BYTES = 1024 * 1024
/** A row of an object's database holds at most 2 MB. */
const CHUNK_BYTES = 1024 * 1024
/** Largest diff that is kept. Without a store it is in the object's database. */
const MAX_DIFF_BYTES = 64 * 1024 * 1024

/** Positions of the chunks of each file in the database, and what follows the run's name in its key in the store. */
const RANGES = {
  patch: { from: 0, to: Number.MAX_SAFE_INTEGER, suffix: '' },
  pack: { from: -(2 ** 40), to: 0, suffix: 'pack' },
} as const

/** Keeps the diff of a run, as a patch or as a pack, after its sandbox is gone. */
export interface DiffStore {
  /** Stores a diff in place of an earlier one; returns its size. */
  write(patch: ReadableStream): Promise<number>
  read(): Promise<ReadableStream>
  delete(): Promise<void>
}

/** Small diffs are in the object's database, large ones in the store of versions. */
export function openDiffStore(
  run: string,
  store: RunStore,
  segments: SegmentStore | undefined,
  file: keyof typeof RANGES,
): DiffStore {
  const { from, to, suffix } = RANGES[file]
  const key = `runs/${sandboxIdOfRun(run) ?? ''}/${run.slice(-24)}${suffix}`
  const chunkAt = (position: number) => {
    const chunk = store.diffChunk(position)
    return chunk === undefined || chunk.position >= to ? undefined : chunk
  }
  return {
    async write(patch) {
      const bytes = await readAll(patch)
      store.clearDiff(from, to)
      if (segments !== undefined && bytes.length > MAX_DATABASE_BYTES) {
        const sha256 = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).toHex()
        await segments.put(key, bytes, { sizeBytes: bytes.length, sha256 })
        return bytes.length
      }
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
        store.addDiffChunk(from + at, bytes.slice(at, at + CHUNK_BYTES))
      return bytes.length
    },
    async read() {
      if (chunkAt(from) === undefined && segments !== undefined) {
        const stored = await segments.get(key)
        if (stored !== undefined) return stored
      }
      let position: number = from
      return new ReadableStream<Uint8Array>({
        pull(controller) {
          const chunk = chunkAt(position)
          if (chunk === undefined) return controller.close()
          position = chunk.position + chunk.bytes.length
          controller.enqueue(chunk.bytes)
        },
      })
    },
    async delete() {
      await segments?.delete(key)
    },
  }
}

async function readAll(stream: ReadableStream): Promise<Uint8Array<ArrayBuffer>> {
  const read = await readToEnd(stream, MAX_DIFF_BYTES)
  if (read.kind === 'whole') return new Uint8Array(read.bytes)
  throw read.kind === 'tooLarge'
    ? new SandwireError('file_too_large', 'The diff of the run is too large to be kept')
    : new SandwireError('sandbox_unreachable', 'The diff of the run could not be read completely')
}
