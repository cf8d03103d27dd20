import { SandwireError } from '@sandwire/protocol'
import type { SignInIssuer } from './auth-info.ts'
import { type Credential, makeCredential } from './credential.ts'
import type { Asker } from './endpoint-check.ts'
import {
  type DeviceAnswer,
  DevicePolling,
  type PollOutcome,
  type Prompt,
  promptOf,
} from './device-sign-in.ts'
import {
  beginDeviceSignIn,
  explain,
  findEndpoints,
  type IssuerEndpoints,
  oauthErrorOf,
  pollDeviceSignIn,
  type Tokens,
} from './issuer-client.ts'

const WHAT = 'Cannot sign in'

async function ask(request: () => Promise<Tokens>): Promise<PollOutcome> {
  try {
    return { is: 'signedIn', tokens: await request() }
  } catch (error) {
    const code = oauthErrorOf(error)
    if (code !== undefined) return { is: 'refused', error: code }
    const known = explain(error, WHAT)
    if (known instanceof SandwireError && known.code === 'issuer_unavailable') return { is: 'unreachable' }
    throw known
  }
}

async function waitForTokens(
  endpoints: IssuerEndpoints,
  answer: DeviceAnswer,
  {
    resource,
    wait,
    signal,
  }: { readonly resource: string | undefined } & Pick<SignInWatch, 'wait' | 'signal'>,
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
export interface SignInWatch {
  readonly show: (prompt: Prompt) => void
  /** Told before anything goes to a host that is not the issuer's. */
  readonly goesTo: (hosts: readonly string[]) => void
  readonly trust: Pick<Asker, 'isTrusted' | 'trustHint'>
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

/** Signs somebody in at the issuer of a server, on a device of theirs (RFC 8628). Throws `SandwireError` or `Wrong`. */
export async function signIn(
  origin: string,
  info: SignInIssuer,
  { show, goesTo, trust, wait, signal }: SignInWatch,
): Promise<Credential> {
  try {
    const endpoints = await findEndpoints(info, trust, signal)
    const others = otherHosts(endpoints)
    if (others.length > 0) goesTo(others)
    const answer = await beginDeviceSignIn(endpoints, info, signal)
    show(promptOf(answer, info.issuer))
    const resource = info.requestParameters?.['resource']
    const tokens = await waitForTokens(endpoints, answer, { resource, wait, signal })
    const credential = makeCredential(origin, { info, endpoints }, tokens, Date.now())
    if (credential === undefined)
      throw new SandwireError('unauthorized', 'Cannot sign in: the issuer gave no ID token')
    return credential
  } catch (error) {
    signal.throwIfAborted()
    throw explain(error, WHAT)
  }
}
