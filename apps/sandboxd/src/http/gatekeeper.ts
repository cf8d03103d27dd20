import { createHash, timingSafeEqual } from 'node:crypto'
import { SandwireError } from '@sandwire/protocol'

/** Who may talk to this server at all. */
export interface GateSettings {
  readonly secret: string | null
  readonly origins: readonly string[]
  /** Exact Host headers that are answered, lower case. */
  readonly hosts: ReadonlySet<string>
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/**
 * Checks Host, Origin and the bearer secret, in this order: the first two keep web pages out even when they know
 * nothing, so they hold without a secret as well.
 */
export class Gatekeeper {
  readonly #settings: GateSettings
  readonly #secretDigest: Buffer | undefined

  constructor(settings: GateSettings) {
    this.#settings = settings
    this.#secretDigest = settings.secret === null ? undefined : digest(settings.secret)
  }

  /** Refuses requests that were meant for another host or come from a web page that is not listed. */
  checkSource(headers: Headers): SandwireError | undefined {
    const host = headers.get('host')?.toLowerCase()
    if (host === undefined || !this.#settings.hosts.has(host)) {
      return new SandwireError('host_refused', 'Cannot answer for this host')
    }
    const origin = headers.get('origin')
    if (origin !== null && !this.#settings.origins.includes(origin)) {
      return new SandwireError('origin_refused', 'Cannot serve this origin')
    }
    return undefined
  }

  checkSecret(headers: Headers): SandwireError | undefined {
    if (this.#secretDigest === undefined) return undefined
    const given = /^Bearer ([\x21-\x7e]+)$/i.exec(headers.get('authorization') ?? '')?.[1]
    if (given !== undefined && timingSafeEqual(digest(given), this.#secretDigest)) return undefined
    return new SandwireError(
      'unauthorized',
      given === undefined
        ? 'Cannot authenticate: no bearer token was sent'
        : 'Cannot authenticate: the token is not accepted',
    )
  }
}
