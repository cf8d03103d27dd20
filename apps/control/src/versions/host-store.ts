import { DISK_FULL, isStoreKey } from '@sandwire/internal-api'
import { withDeadline } from '../http/deadline.ts'
import { readBoundedJson } from '../http/read-bounded.ts'
import { z } from 'zod'
import {
  type ByteRange,
  responseTimeoutMs,
  type SegmentFacts,
  type SegmentStore,
  storeUnavailable,
} from './segment-store.ts'

/** Insufficient Storage. */
const DISK_FULL_STATUS = 507
const MAX_LIST_BYTES = 256 * 1024
const listBody = z.object({ keys: z.array(z.string().refine(isStoreKey)).max(1_000) })

/** The folder of the host, through its socket. */
export class HostStore implements SegmentStore {
  readonly #fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly #timeoutMs: typeof responseTimeoutMs

  constructor(
    fetchStore: (url: string, init: RequestInit) => Promise<Response>,
    timeoutMs = responseTimeoutMs,
  ) {
    this.#fetch = fetchStore
    this.#timeoutMs = timeoutMs
  }

  async put(key: string, body: ReadableStream | Uint8Array<ArrayBuffer>, facts: SegmentFacts): Promise<void> {
    const headers = { 'sandwire-sha256': facts.sha256, 'sandwire-size': String(facts.sizeBytes) }
    const response = await this.#send(key, { method: 'PUT', body, headers }, facts.sizeBytes)
    await response.body?.cancel()
    if (response.status === DISK_FULL_STATUS) throw storeUnavailable(DISK_FULL)
    if (!response.ok) throw storeUnavailable(`it responded with ${response.status}`)
  }

  async get(key: string, range?: ByteRange): Promise<ReadableStream | undefined> {
    const headers: Record<string, string> =
      range === undefined ? {} : { range: `bytes=${range.start}-${range.end - 1}` }
    const response = await this.#send(key, { method: 'GET', headers })
    if (response.ok && response.body !== null) return response.body
    await response.body?.cancel()
    if (response.status === 404) return undefined
    throw storeUnavailable(`it responded with ${response.status}`)
  }

  async delete(key: string): Promise<void> {
    const response = await this.#send(key, { method: 'DELETE' })
    await response.body?.cancel()
    if (!response.ok) throw storeUnavailable(`it responded with ${response.status}`)
  }

  async list(prefix: string, after = ''): Promise<readonly string[]> {
    const query = new URLSearchParams({ prefix, after })
    const late = (): Error => storeUnavailable('it does not respond')
    return withDeadline({ ms: this.#timeoutMs(), late }, async (signal) => {
      const response = await this.#send(`?${query.toString()}`, { method: 'GET', signal })
      const parsed = listBody.safeParse(await readBoundedJson(response, MAX_LIST_BYTES, signal))
      if (!response.ok || !parsed.success) throw storeUnavailable('it sent an invalid response')
      return parsed.data.keys
    })
  }

  /** Returns when the response begins; its body is not limited. */
  #send(path: string, init: RequestInit, sentBytes = 0): Promise<Response> {
    const late = (): Error => storeUnavailable('it does not respond in time')
    return withDeadline({ ms: this.#timeoutMs(sentBytes), late }, async (signal) => {
      try {
        return await this.#fetch(`http://store/${path}`, { redirect: 'manual', signal, ...init })
      } catch (cause) {
        throw storeUnavailable('it does not respond', cause)
      }
    })
  }
}
