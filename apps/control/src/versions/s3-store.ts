import { isStoreKey } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { AwsClient } from 'aws4fetch'
import { withDeadline } from '../http/deadline.ts'
import { readBounded } from '../http/read-bounded.ts'
import { retryIdempotent } from '../providers/retry.ts'
import { checkedBody } from './checked-body.ts'
import type { S3Settings } from './s3-settings.ts'
import {
  type ByteRange,
  responseTimeoutMs,
  type SegmentFacts,
  type SegmentStore,
  storeUnavailable,
} from './segment-store.ts'

const MAX_LIST_BYTES = 1024 * 1024
const MAX_KEYS = 1_000
/** The service is overloaded or fails; the same request may succeed later. */
const TRANSIENT = new Set([408, 429, 500, 502, 503, 504])
/** Our checksum, beside the object. */
const SHA256_METADATA = 'x-amz-meta-sha256'

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

export interface S3Dependencies {
  readonly fetch: (request: Request) => Promise<Response>
  readonly sleep: (ms: number) => Promise<void>
  readonly random: () => number
  /** Default: `responseTimeoutMs`. */
  readonly timeoutMs?: typeof responseTimeoutMs
}

/** An error that the same request may not cause again. */
class TransientError extends SandwireError {
  constructor(problem: string, cause?: unknown) {
    super('store_unavailable', `Cannot use the store of versions: ${problem}`, { cause })
  }
}

/** A bucket of an S3-compatible service. */
export class S3Store implements SegmentStore {
  readonly #base: string
  readonly #keyPrefix: string
  readonly #client: AwsClient
  readonly #deps: S3Dependencies
  readonly #timeoutMs: typeof responseTimeoutMs

  constructor(
    { endpoint, region, bucket, prefix }: S3Settings,
    credentials: S3Credentials,
    deps: S3Dependencies,
  ) {
    this.#base = `${endpoint}/${bucket}`
    this.#keyPrefix = prefix === '' ? '' : `${prefix}/`
    this.#client = new AwsClient({ ...credentials, service: 's3', region })
    this.#deps = deps
    this.#timeoutMs = deps.timeoutMs ?? responseTimeoutMs
  }

  async put(
    key: string,
    body: ReadableStream | Uint8Array<ArrayBuffer>,
    { sizeBytes, sha256 }: SegmentFacts,
  ): Promise<void> {
    if (await this.#has(key, { sizeBytes, sha256 })) {
      if (!(body instanceof Uint8Array)) await body.cancel()
      return
    }
    const headers = {
      // Part of the signature, and compared by services that read the body before they store it.
      'x-amz-content-sha256': sha256,
      'if-none-match': '*',
      [SHA256_METADATA]: sha256,
      'content-type': 'application/octet-stream',
    }
    const response = await this.#send('PUT', key, {
      headers,
      body: checkedBody(body, { sizeBytes, sha256 }),
      sentBytes: sizeBytes,
    })
    await response.body?.cancel()
    // 412: another request has stored it meanwhile.
    if (response.status === 412 && (await this.#has(key, { sizeBytes, sha256 }))) return
    this.#check(response)
  }

  get(key: string, range?: ByteRange): Promise<ReadableStream | undefined> {
    const headers: Record<string, string> =
      range === undefined ? {} : { range: `bytes=${range.start}-${range.end - 1}` }
    return this.#retry(async () => {
      const response = await this.#send('GET', key, { headers })
      if (await this.#isMissingKey(response)) return undefined
      if (!response.ok) await response.body?.cancel()
      this.#check(response)
      if (range !== undefined && response.status !== 206) {
        await response.body?.cancel()
        throw storeUnavailable('it does not support ranges')
      }
      return response.body ?? undefined
    })
  }

  async delete(key: string): Promise<void> {
    await this.#retry(async () => {
      const response = await this.#send('DELETE', key)
      if (await this.#isMissingKey(response)) return
      await response.body?.cancel()
      this.#check(response)
    })
  }

  list(prefix: string, after = ''): Promise<readonly string[]> {
    const query = new URLSearchParams({
      'list-type': '2',
      'max-keys': String(MAX_KEYS),
      prefix: this.#keyPrefix + prefix,
      ...(after === '' ? {} : { 'start-after': this.#keyPrefix + after }),
    })
    return this.#retry(async () => {
      const response = await this.#send('GET', `?${query.toString()}`)
      const text = await readBounded(response, MAX_LIST_BYTES, AbortSignal.timeout(this.#timeoutMs()))
      this.#check(response)
      if (text?.includes('<ListBucketResult') !== true) throw storeUnavailable('it sent an invalid response')
      return text
        .matchAll(/<Key>([^<]*)<\/Key>/g)
        .map(([, key = '']) => key.slice(this.#keyPrefix.length))
        .filter(isStoreKey)
        .toArray()
    })
  }

  /** True when the object exists with this content; throws `conflict` when it has other content. */
  async #has(key: string, { sizeBytes, sha256 }: SegmentFacts): Promise<boolean> {
    return this.#retry(async () => {
      const response = await this.#send('HEAD', key)
      await response.body?.cancel()
      if (response.status === 404) return false
      this.#check(response)
      const isSame =
        response.headers.get(SHA256_METADATA) === sha256 &&
        Number(response.headers.get('content-length')) === sizeBytes
      if (!isSame) throw new SandwireError('conflict', 'Cannot store the segment: the key has other content')
      return true
    })
  }

  /** True when there is no such object; throws when there is no such bucket. */
  async #isMissingKey(response: Response): Promise<boolean> {
    if (response.status !== 404) return false
    const text = await readBounded(response, MAX_LIST_BYTES, AbortSignal.timeout(this.#timeoutMs()))
    if (text?.includes('<Code>NoSuchBucket</Code>') === true) this.#check(response)
    return true
  }

  #check({ ok, status }: Response): void {
    if (ok) return
    if (TRANSIENT.has(status)) throw new TransientError(`it responded with ${status}`)
    if (status >= 300 && status < 400)
      throw storeUnavailable('it redirects; check the region and the endpoint of the bucket')
    if (status === 401 || status === 403)
      throw storeUnavailable(`it refused access (${status}); check the access key and its rights`)
    throw storeUnavailable(`it responded with ${status}; check the name of the bucket`)
  }

  async #send(
    method: string,
    path: string,
    options: {
      readonly headers?: Record<string, string>
      readonly body?: ReadableStream
      readonly sentBytes?: number
    } = {},
  ): Promise<Response> {
    const { sentBytes, ...init } = options
    const url = path.startsWith('?') ? `${this.#base}${path}` : `${this.#base}/${this.#keyPrefix}${path}`
    // Not worth retrying at once: it was given enough time.
    const late = (): Error => storeUnavailable('it does not respond')
    return withDeadline({ ms: this.#timeoutMs(sentBytes), late }, async (signal) => {
      const request = await this.#client.sign(url, { method, redirect: 'manual', signal, ...init })
      try {
        return await this.#deps.fetch(request)
      } catch (cause) {
        throw new TransientError('it does not respond', cause)
      }
    })
  }

  #retry<T>(run: () => Promise<T>): Promise<T> {
    const { sleep, random } = this.#deps
    return retryIdempotent(run, {
      isWorthRetrying: (error) => error instanceof TransientError,
      sleep,
      random,
    })
  }
}
