import { SandwireError } from '@sandwire/protocol'
import type { SignInIssuer } from './issuer-info.ts'
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

/** Poll interval if the issuer names none (RFC 8628, 3.5). */
const DEFAULT_INTERVAL_SECONDS = 5
/** Added to the interval by each `slow_down` (RFC 8628, 3.5). */
const SLOW_DOWN_SECONDS = 5
/** Upper limits for the values of the issuer. */
const MAX_INTERVAL_SECONDS = 60
const MAX_WAIT_SECONDS = 30 * 60
const MAX_CODE_CHARS = 64

/** What the user has to open and enter, safe to print. */
export interface DevicePrompt {
  readonly address: string
  readonly code: string
  /** The address with the code in it, if the issuer sent one. */
  readonly completeAddress: string | undefined
}

/** Response of the device authorization endpoint (RFC 8628, 3.2). */
export interface DeviceAuthorization {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
  readonly verification_uri_complete?: string
  readonly expires_in: number
  readonly interval?: number
}

/** Validates the page and the code of an issuer. A page on this machine is allowed for a local issuer only. */
export function validatePrompt(authorization: DeviceAuthorization, issuer: string): DevicePrompt {
  const validPage = (text: string): string | undefined => {
    const page = webAddress(text)
    return page === undefined || endpointDecision(page, issuer) === 'denied' ? undefined : page
  }
  const address = validPage(authorization.verification_uri)
  const code = printable(authorization.user_code).slice(0, MAX_CODE_CHARS)
  if (address === undefined || code === '')
    throw new SandwireError('version_unsupported', 'Cannot sign in: the issuer sent no valid web page')
  const complete = authorization.verification_uri_complete
  return { address, code, completeAddress: complete === undefined ? undefined : validPage(complete) }
}

/** Hosts of pages of issuers that have them elsewhere. */
const PAGE_HOSTS: Readonly<Record<string, readonly string[]>> = {
  'login.microsoftonline.com': ['microsoft.com', 'www.microsoft.com', 'login.microsoft.com'],
}

/**
 * True for a page of the issuer. A hostile server can be its own issuer and pass on a code of another issuer, where it requested
 * that code for itself: a user who enters it there signs in the server.
 */
export function isPageOf(page: string, issuer: string): boolean {
  const { host, protocol } = new URL(page)
  const own = new URL(issuer)
  if (protocol !== own.protocol) return false
  return host === own.host || PAGE_HOSTS[own.host]?.includes(host) === true
}

/** Result of a poll. */
export type PollOutcome =
  | { readonly kind: 'signedIn'; readonly tokens: Tokens }
  /** An OAuth error code. */
  | { readonly kind: 'refused'; readonly error: string }
  /** The issuer cannot be reached at the moment. */
  | { readonly kind: 'unreachable' }

/** What to do after a poll. */
export type PollStep =
  | { readonly do: 'wait'; readonly seconds: number }
  | { readonly do: 'finish'; readonly tokens: Tokens }
  | { readonly do: 'fail'; readonly error: SandwireError }

const EXPIRED = 'Cannot sign in: the code has expired'

/** Decides when to poll again (RFC 8628, 3.5). */
export class DevicePolling {
  readonly #endMs: number
  #intervalSeconds: number

  constructor(authorization: Pick<DeviceAuthorization, 'expires_in' | 'interval'>, nowMs: number) {
    this.#endMs = nowMs + Math.min(MAX_WAIT_SECONDS, Math.max(0, authorization.expires_in)) * 1000
    const interval = authorization.interval ?? DEFAULT_INTERVAL_SECONDS
    this.#intervalSeconds = Math.min(MAX_INTERVAL_SECONDS, Math.max(1, interval))
  }

  get intervalSeconds(): number {
    return this.#intervalSeconds
  }

  receive(outcome: PollOutcome, nowMs: number): PollStep {
    if (outcome.kind === 'signedIn') return { do: 'finish', tokens: outcome.tokens }
    const isPending =
      outcome.kind === 'unreachable' ||
      outcome.error === 'authorization_pending' ||
      outcome.error === 'slow_down'
    // An unreachable issuer is polled less often, as after `slow_down`.
    if (isPending && !(outcome.kind === 'refused' && outcome.error === 'authorization_pending'))
      this.#intervalSeconds = Math.min(MAX_INTERVAL_SECONDS, this.#intervalSeconds + SLOW_DOWN_SECONDS)
    if (isPending && nowMs + this.#intervalSeconds * 1000 < this.#endMs)
      return { do: 'wait', seconds: this.#intervalSeconds }
    if (isPending || outcome.error === 'expired_token') return fail(EXPIRED)
    if (outcome.error === 'access_denied') return fail('Cannot sign in: the request was declined')
    return fail(`Cannot sign in: the issuer returned ${printable(outcome.error)}`)
  }
}

function fail(message: string): PollStep {
  return { do: 'fail', error: new SandwireError('unauthorized', message) }
}

const ACTION = 'Cannot sign in'

async function poll(request: () => Promise<Tokens>): Promise<PollOutcome> {
  try {
    return { kind: 'signedIn', tokens: await request() }
  } catch (error) {
    const code = oauthErrorOf(error)
    if (code !== undefined) return { kind: 'refused', error: code }
    const known = toSandwireError(error, ACTION)
    if (known instanceof SandwireError && known.code === 'issuer_unavailable') return { kind: 'unreachable' }
    throw known
  }
}

async function waitForTokens(
  endpoints: IssuerEndpoints,
  authorization: DeviceAuthorization,
  {
    resource,
    wait,
    signal,
  }: { readonly resource: string | undefined } & Pick<SignInOptions, 'wait' | 'signal'>,
): Promise<Tokens> {
  const polling = new DevicePolling(authorization, Date.now())
  let seconds = polling.intervalSeconds
  while (true) {
    await wait(seconds * 1000, signal)
    const parameters = { deviceCode: authorization.device_code, resource, signal }
    const outcome = await poll(() => pollDeviceSignIn(endpoints, parameters))
    const step = polling.receive(outcome, Date.now())
    if (step.do === 'finish') return step.tokens
    if (step.do === 'fail') throw step.error
    seconds = step.seconds
  }
}

/** Interaction with the user during a sign-in. */
export interface SignInOptions {
  readonly show: (prompt: DevicePrompt) => void
  /** Called before a request to a host other than the issuer's. */
  readonly onOtherHosts: (hosts: readonly string[]) => void
  /** Called before the sign-in starts; throws if the user does not trust the server with these endpoints. */
  readonly confirmEndpoints: (endpoints: IssuerEndpoints) => Promise<void>
  /** Called before the code is shown; throws if the user does not trust the server with this page of another host. */
  readonly confirmPage: (page: string, issuer: string) => Promise<void>
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

/** Signs in with the device authorization grant (RFC 8628). Throws `SandwireError` or `UsageError`. */
export async function signIn(
  origin: string,
  info: SignInIssuer,
  { show, onOtherHosts, confirmEndpoints, confirmPage, trust, wait, signal }: SignInOptions,
): Promise<Credential> {
  try {
    const endpoints = await findEndpoints(info, trust, signal)
    await confirmEndpoints(endpoints)
    const others = otherHosts(endpoints)
    if (others.length > 0) onOtherHosts(others)
    const authorization = await beginDeviceSignIn(endpoints, info, signal)
    const prompt = validatePrompt(authorization, info.issuer)
    for (const page of [prompt.address, prompt.completeAddress])
      if (page !== undefined && !isPageOf(page, info.issuer)) await confirmPage(page, info.issuer)
    show(prompt)
    const resource = info.requestParameters?.['resource']
    const tokens = await waitForTokens(endpoints, authorization, { resource, wait, signal })
    const credential = createCredential(origin, { info, endpoints }, tokens, Date.now())
    if (credential === undefined)
      throw new SandwireError('unauthorized', 'Cannot sign in: the issuer returned no ID token')
    return credential
  } catch (error) {
    signal.throwIfAborted()
    throw toSandwireError(error, ACTION)
  }
}
