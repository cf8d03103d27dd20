import { SandwireError } from '@sandwire/protocol'
import type { SignInIssuer } from './auth-info.ts'
import { type Credential, createCredential } from './credential.ts'
import { type EndpointSource, endpointDecision } from './endpoint-policy.ts'
import {
  beginDeviceSignIn,
  toSandwireError,
  findEndpoints,
  type IssuerEndpoints,
  oauthErrorOf,
  pollDeviceSignIn,
  type Tokens,
} from './issuer-client.ts'
import { webAddress } from '../server/address.ts'
import { printable } from '../text/printable.ts'

/** Between two questions when the issuer names no time (RFC 8628, 3.5). */
const DEFAULT_INTERVAL_SECONDS = 5
/** Added for good by each `slow_down` (RFC 8628, 3.5). */
const SLOW_DOWN_SECONDS = 5
/** Whatever an issuer says, nobody waits longer than this between two questions, or for somebody to agree. */
const MAX_INTERVAL_SECONDS = 60
const MAX_WAIT_SECONDS = 30 * 60
const MAX_CODE_CHARS = 64

/** What a person has to open and type, safe to show. */
export interface DevicePrompt {
  readonly address: string
  readonly code: string
  /** The address with the code in it, where the issuer has one. */
  readonly completeAddress: string | undefined
}

/** What an issuer says when a sign-in begins. */
export interface DeviceAuthorization {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
  readonly verification_uri_complete?: string
  readonly expires_in: number
  readonly interval?: number
}

/** Makes what an issuer wants to be shown safe to show, and to open: its page is of this machine only if it is itself. */
export function validatePrompt(answer: DeviceAuthorization, issuer: string): DevicePrompt {
  const pageOf = (text: string): string | undefined => {
    const page = webAddress(text)
    return page === undefined || endpointDecision(page, issuer) === 'never' ? undefined : page
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

  constructor(answer: Pick<DeviceAuthorization, 'expires_in' | 'interval'>, nowMs: number) {
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

const WHAT = 'Cannot sign in'

async function ask(request: () => Promise<Tokens>): Promise<PollOutcome> {
  try {
    return { is: 'signedIn', tokens: await request() }
  } catch (error) {
    const code = oauthErrorOf(error)
    if (code !== undefined) return { is: 'refused', error: code }
    const known = toSandwireError(error, WHAT)
    if (known instanceof SandwireError && known.code === 'issuer_unavailable') return { is: 'unreachable' }
    throw known
  }
}

async function waitForTokens(
  endpoints: IssuerEndpoints,
  answer: DeviceAuthorization,
  {
    resource,
    wait,
    signal,
  }: { readonly resource: string | undefined } & Pick<SignInOptions, 'wait' | 'signal'>,
): Promise<Tokens> {
  const polling = new DevicePolling(answer, Date.now())
  let seconds = polling.intervalSeconds
  while (true) {
    await wait(seconds * 1000, signal)
    const poll = { deviceCode: answer.device_code, resource, signal }
    const outcome = await ask(() => pollDeviceSignIn(endpoints, poll))
    const step = polling.receive(outcome, Date.now())
    if (step.do === 'finish') return step.tokens
    if (step.do === 'fail') throw step.error
    seconds = step.seconds
  }
}

/** What whoever signs in sees, and can do. */
export interface SignInOptions {
  readonly show: (prompt: DevicePrompt) => void
  /** Told before anything goes to a host that is not the issuer's. */
  readonly onOtherHosts: (hosts: readonly string[]) => void
  readonly trust: Pick<EndpointSource, 'isTrusted' | 'trustHint'>
  /** Waits between two polls; throws when aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
  readonly signal: AbortSignal
}

function otherHosts({ issuer, token, deviceAuthorization, revocation }: IssuerEndpoints): readonly string[] {
  const hosts = [deviceAuthorization, token, revocation].flatMap((url) =>
    url === undefined ? [] : [new URL(url).host],
  )
  return [...new Set(hosts)].filter((host) => host !== new URL(issuer).host)
}

/** Signs somebody in at the issuer of a server, on a device of theirs (RFC 8628). Throws `SandwireError` or `UsageError`. */
export async function signIn(
  origin: string,
  info: SignInIssuer,
  { show, onOtherHosts, trust, wait, signal }: SignInOptions,
): Promise<Credential> {
  try {
    const endpoints = await findEndpoints(info, trust, signal)
    const others = otherHosts(endpoints)
    if (others.length > 0) onOtherHosts(others)
    const answer = await beginDeviceSignIn(endpoints, info, signal)
    show(validatePrompt(answer, info.issuer))
    const resource = info.requestParameters?.['resource']
    const tokens = await waitForTokens(endpoints, answer, { resource, wait, signal })
    const credential = createCredential(origin, { info, endpoints }, tokens, Date.now())
    if (credential === undefined)
      throw new SandwireError('unauthorized', 'Cannot sign in: the issuer gave no ID token')
    return credential
  } catch (error) {
    signal.throwIfAborted()
    throw toSandwireError(error, WHAT)
  }
}
