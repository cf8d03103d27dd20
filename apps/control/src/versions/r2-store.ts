import { SandwireError } from '@sandwire/protocol'
import { type ByteRange, type SegmentFacts, type SegmentStore, storeUnavailable } from './segment-store.ts'

/** A bucket of Cloudflare R2, which checks the SHA-256 of what it stores. */
export class R2Store implements SegmentStore {
  readonly #bucket: R2Bucket

  constructor(bucket: R2Bucket) {
    this.#bucket = bucket
  }

  async put(
    key: string,
    body: ReadableStream | Uint8Array<ArrayBuffer>,
    { sizeBytes, sha256 }: SegmentFacts,
  ): Promise<void> {
    const content = body instanceof Uint8Array ? body : body.pipeThrough(new FixedLengthStream(sizeBytes))
    const stored = await this.#use(() =>
      this.#bucket.put(key, content, { sha256, onlyIf: { etagDoesNotMatch: '*' } }),
    )
    if (stored !== null) return
    const existing = await this.#use(() => this.#bucket.head(key))
    const known = existing?.checksums.sha256
    if (known !== undefined && new Uint8Array(known).toHex() === sha256) return
    throw new SandwireError('conflict', 'Cannot store the segment: the key has other content')
  }

  async get(key: string, range?: ByteRange): Promise<ReadableStream | undefined> {
    const options =
      range === undefined ? {} : { range: { offset: range.start, length: range.end - range.start } }
    return (await this.#use(() => this.#bucket.get(key, options)))?.body
  }

  async delete(key: string): Promise<void> {
    await this.#use(() => this.#bucket.delete(key))
  }

  async list(prefix: string, after?: string): Promise<readonly string[]> {
    const options = { prefix, ...(after === undefined ? {} : { startAfter: after }) }
    return (await this.#use(() => this.#bucket.list(options))).objects.map(({ key }) => key)
  }

  async #use<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (cause) {
      throw storeUnavailable('the request failed', cause)
    }
  }
}
