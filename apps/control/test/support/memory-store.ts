import { isStoreKey } from '@sandwire/internal-api'
import { type ByteRange, type SegmentStore, storeUnavailable } from '../../src/versions/segment-store.ts'

/** A store of segments in memory. */
export class MemoryStore implements SegmentStore {
  readonly objects = new Map<string, Uint8Array<ArrayBuffer>>()
  isFailing = false

  async put(key: string, body: ReadableStream | Uint8Array<ArrayBuffer>): Promise<void> {
    this.#check(key)
    this.objects.set(key, await new Response(body).bytes())
  }

  async get(key: string, range?: ByteRange): Promise<ReadableStream | undefined> {
    this.#check(key)
    const bytes = this.objects.get(key)
    if (bytes === undefined) return undefined
    return new Response(bytes.slice(range?.start ?? 0, range?.end ?? bytes.byteLength)).body ?? undefined
  }

  async delete(key: string): Promise<void> {
    this.#check(key)
    this.objects.delete(key)
  }

  async list(prefix: string, after = ''): Promise<readonly string[]> {
    this.#check()
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(prefix) && key > after)
    return keys.toSorted().slice(0, 2)
  }

  #check(key?: string): void {
    if (this.isFailing) throw storeUnavailable('it fails')
    if (key !== undefined && !isStoreKey(key)) throw storeUnavailable('the key is malformed')
  }
}
