import { SandwireError } from '@sandwire/protocol'
import { printable } from '../text/printable.ts'
import { mayHaveAsked } from './nearness.ts'
import { webAddress } from './secure-url.ts'
import type { Tokens } from './issuer-client.ts'

/** Between two questions when the issuer names no time (RFC 8628, 3.5). */
const DEFAULT_INTERVAL_SECONDS = 5
/** Added for good by each `slow_down` (RFC 8628, 3.5). */
const SLOW_DOWN_SECONDS = 5
/** Whatever an issuer says, nobody waits longer than this between two questions, or for somebody to agree. */
const MAX_INTERVAL_SECONDS = 60
const MAX_WAIT_SECONDS = 30 * 60
const MAX_CODE_CHARS = 64

/** What a person has to open and type, safe to show. */
export interface Prompt {
  readonly address: string
  readonly code: string
  /** The address with the code in it, where the issuer has one. */
  readonly completeAddress: string | undefined
}

/** What an issuer says when a sign-in begins. */
export interface DeviceAnswer {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
  readonly verification_uri_complete?: string
  readonly expires_in: number
  readonly interval?: number
}

/** Makes what an issuer wants to be shown safe to show, and to open: its page is of this machine only if it is itself. */
export function promptOf(answer: DeviceAnswer, issuer: string): Prompt {
  const pageOf = (text: string): string | undefined => {
    const page = webAddress(text)
    return page === undefined || mayHaveAsked(page, issuer) === 'never' ? undefined : page
  }
  const address = pageOf(answer.verification_uri)
  const code = printable(answer.user_code).slice(0, MAX_CODE_CHARS)
  if (address === undefined || code === '')
    throw new SandwireError('version_unsupported', 'Cannot sign in: the issuer names no web page to open')
  const complete = answer.verification_uri_complete
  return { address, code, completeAddress: complete === undefined ? undefined : pageOf(complete) }
}

/** What an answer to a poll means. */
export type PollOutcome =
  | { readonly is: 'signedIn'; readonly tokens: Tokens }
  /** An OAuth error code. */
  | { readonly is: 'refused'; readonly error: string }
  /** The issuer cannot be reached; that may pass. */
  | { readonly is: 'unreachable' }

/** What to do after it. */
export type PollStep =
  | { readonly do: 'wait'; readonly seconds: number }
  | { readonly do: 'finish'; readonly tokens: Tokens }
  | { readonly do: 'fail'; readonly error: SandwireError }

const AGAIN = 'Cannot sign in: nobody agreed in time'

/** Decides how to go on asking whether somebody agreed (RFC 8628, 3.5). */
export class DevicePolling {
  readonly #endMs: number
  #intervalSeconds: number

  constructor(answer: Pick<DeviceAnswer, 'expires_in' | 'interval'>, nowMs: number) {
    this.#endMs = nowMs + Math.min(MAX_WAIT_SECONDS, Math.max(0, answer.expires_in)) * 1000
    const interval = answer.interval ?? DEFAULT_INTERVAL_SECONDS
    this.#intervalSeconds = Math.min(MAX_INTERVAL_SECONDS, Math.max(1, interval))
  }

  get intervalSeconds(): number {
    return this.#intervalSeconds
  }

  receive(outcome: PollOutcome, nowMs: number): PollStep {
    if (outcome.is === 'signedIn') return { do: 'finish', tokens: outcome.tokens }
    const isPending =
      outcome.is === 'unreachable' ||
      outcome.error === 'authorization_pending' ||
      outcome.error === 'slow_down'
    // An issuer that does not answer is asked less often, as one that says so.
    if (isPending && !(outcome.is === 'refused' && outcome.error === 'authorization_pending'))
      this.#intervalSeconds = Math.min(MAX_INTERVAL_SECONDS, this.#intervalSeconds + SLOW_DOWN_SECONDS)
    if (isPending && nowMs + this.#intervalSeconds * 1000 < this.#endMs)
      return { do: 'wait', seconds: this.#intervalSeconds }
    if (isPending || outcome.error === 'expired_token') return fail(AGAIN)
    if (outcome.error === 'access_denied') return fail('Cannot sign in: it was declined')
    return fail(`Cannot sign in: the issuer says ${printable(outcome.error)}`)
  }
}

function fail(message: string): PollStep {
  return { do: 'fail', error: new SandwireError('unauthorized', message) }
}
