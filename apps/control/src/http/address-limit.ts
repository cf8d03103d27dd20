import { parseIpAddress } from '@sandwire/network-policy'
import { SandwireError } from '@sandwire/protocol'
import { Buckets } from './buckets.ts'

/** Networks remembered; the one unheard of for longest is forgotten first. */
const MAX_NETWORKS = 10_000
const MINUTE_MS = 60_000

/** Counts for all isolates together, where the platform has such a thing. */
export interface RateLimit {
  limit(options: { key: string }): Promise<{ success: boolean }>
}

/** Who counts as one: an IPv4 address, or the /64 that one IPv6 host can pick its addresses from. */
export function networkOf(address: string): string {
  const parsed = parseIpAddress(address)
  if (parsed === undefined) return address
  const { bytes, text } = parsed
  if (bytes.length === 4) return text
  const isMapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  return isMapped ? bytes.subarray(12).join('.') : `${bytes.subarray(0, 8).toHex()}/64`
}

export function isLoopback(address: string): boolean {
  const text = parseIpAddress(networkOf(address))?.text ?? parseIpAddress(address)?.text ?? ''
  return text === '::1' || text.startsWith('127.')
}

export interface AddressLimitSettings {
  /** 0: no limit. */
  readonly perMinute: number
  /** On one machine everybody comes from there. */
  readonly exemptsLoopback: boolean
}

/** How often something may come from one network. Addresses that are not known count as one. */
export class AddressLimit {
  readonly #settings: AddressLimitSettings
  readonly #buckets: Buckets

  constructor(settings: AddressLimitSettings) {
    this.#settings = settings
    const { perMinute } = settings
    this.#buckets = new Buckets({ perSecond: perMinute / 60, burst: perMinute, max: MAX_NETWORKS })
  }

  /** Counts one; returns why it is too many. */
  refusal(address: string, nowMs: number): SandwireError | undefined {
    if (this.#isExempt(address)) return undefined
    const network = networkOf(address)
    if (this.#buckets.take(network, nowMs)) return undefined
    return tooMany(this.#buckets.waitMs(network, nowMs))
  }

  /** Why one more would be too many; counts nothing. */
  outlook(address: string, nowMs: number): SandwireError | undefined {
    if (this.#isExempt(address)) return undefined
    const waitMs = this.#buckets.waitMs(networkOf(address), nowMs)
    return waitMs > 0 ? tooMany(waitMs) : undefined
  }

  /** As `refusal`, counted by the platform. */
  async refusalBy(platform: RateLimit, address: string): Promise<SandwireError | undefined> {
    if (this.#isExempt(address)) return undefined
    const { success } = await platform.limit({ key: networkOf(address) })
    return success ? undefined : tooMany(MINUTE_MS)
  }

  #isExempt(address: string): boolean {
    const { perMinute, exemptsLoopback } = this.#settings
    return perMinute === 0 || (exemptsLoopback && isLoopback(address))
  }
}

function tooMany(retryAfterMs: number): SandwireError {
  const message = 'Cannot take more requests from this network address now'
  return new SandwireError('too_many_from_address', message, { retryAfterMs })
}
