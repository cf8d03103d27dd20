import { SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import { type Authenticator, type Identity, type Scope, unauthorized } from '../auth/identity.ts'
import type { Callers } from '../http/callers.ts'
import type { RequestBudget, UnauthenticatedRequest } from '../http/rate-limits.ts'
import { costOf } from '../http/request-cost.ts'
import { hasPublicOrigin, type SourceSettings } from '../http/source-check.ts'
import type { AppEnv } from './context.ts'
import type { Credential, Policy } from './policies.ts'

export interface GuardDependencies {
  readonly source: SourceSettings
  readonly authenticator: Authenticator
  /** Tickets are accepted only where sockets are opened. */
  readonly tickets: Authenticator
  /** Tokens of services in a cookie, which are accepted for conversations only. */
  readonly serviceCookies: Authenticator
  /** Share links can be redeemed without a credential. */
  readonly hasGuests: boolean
  readonly budget: RequestBudget
  readonly callers: Callers
  readonly nowMs: () => number
}

/** The error if a cookie is not sufficient for this request. */
function cookieRefusal(
  headers: Headers,
  credential: Credential,
  source: SourceSettings,
): SandwireError | undefined {
  switch (credential) {
    case 'socket':
      return unauthorized('a browser needs a ticket here')
    case 'write':
    case 'invited':
    case 'page socket':
    case 'chat socket':
      return hasPublicOrigin(headers, source)
        ? undefined
        : new SandwireError('origin_refused', 'Changes with a cookie need an origin of this server')
    case 'read':
      return hasPublicOrigin(headers, source) || headers.get('sec-fetch-site') === 'same-origin'
        ? undefined
        : new SandwireError('origin_refused', 'Another site cannot read this with a cookie')
  }
}

function hasConversationOrigin(headers: Headers, source: SourceSettings): boolean {
  return hasPublicOrigin(headers, source) || source.conversationOrigins.includes(headers.get('origin') ?? '')
}

/** Throws `forbidden` unless the credential has this scope. */
export function checkScope({ scopes }: Pick<Identity, 'scopes'>, scope: Scope): void {
  if (!scopes.includes(scope))
    throw new SandwireError('forbidden', `The credential does not have the scope "${scope}"`)
}

/** Routes that answer even when the server cannot authenticate anyone, so that the operator can monitor it. */
const HEALTH_ROUTES: readonly string[] = ['/health', '/healthz', '/readyz']

/** Whether a public route is limited as a health check or as a page. Sign-in steps have a limit in addition. */
function kindOf(pathname: string): UnauthenticatedRequest {
  return HEALTH_ROUTES.includes(pathname) ? 'health' : 'page'
}

/** Authenticates a request and checks its policy, scopes and rate limits. */
export function guard(policy: Policy, deps: GuardDependencies): MiddlewareHandler<AppEnv> {
  const { source, authenticator, tickets, serviceCookies, hasGuests, budget, callers, nowMs } = deps
  const refuseUnauthenticated = (request: Request, error: SandwireError): never => {
    throw budget.unauthenticatedRefusal('refused', request, nowMs()) ?? error
  }
  const takesTickets =
    policy !== 'public' && ['socket', 'page socket', 'chat socket'].includes(policy.credential)
  const takesServiceCookie = policy !== 'public' && policy.credential === 'chat socket'
  const takesGuests = policy !== 'public' && policy.credential === 'invited' && hasGuests
  /** Undefined: a guest without a credential. */
  const identify = async (request: Request): Promise<Identity | undefined> => {
    const { headers } = request
    // An expired cookie counts as no credential here: a guest cannot delete it.
    const mayBeGuest = takesGuests && !headers.has('authorization')
    let identity: Identity | undefined
    try {
      identity = takesTickets ? await tickets.authenticate(headers) : undefined
      identity ??= await authenticator.authenticate(headers)
      if (takesServiceCookie) identity ??= await serviceCookies.authenticate(headers)
    } catch (caught) {
      if (!mayBeGuest) return refuseUnauthenticated(request, SandwireError.from(caught))
    }
    if (identity !== undefined) {
      await callers.add(request, identity.account)
      return identity
    }
    if (!mayBeGuest) return refuseUnauthenticated(request, unauthorized('no credential was sent'))
    const refusal = budget.guestRefusal(request, nowMs())
    if (refusal !== undefined) throw refusal
    return undefined
  }
  /** Counts a request to a public route: for the account of a valid credential, so that clients without a credential cannot use up its requests. */
  const admitPublic = async (request: Request): Promise<void> => {
    const kind = kindOf(new URL(request.url).pathname)
    const caller = await callers.find(request)
    let account = caller.group === 'account' ? caller.key : undefined
    if (account === undefined) {
      const refusal = budget.unauthenticatedRefusal(kind, request, nowMs())
      if (refusal === undefined) return
      const identity = await authenticator.authenticate(request.headers).catch(() => undefined)
      if (identity === undefined) throw refusal
      account = identity.account
      await callers.add(request, account)
    }
    const limited = budget.refusal(account, costOf(request), nowMs())
    if (limited !== undefined) throw limited
  }
  return async (context, next) => {
    if (policy === 'public') {
      await admitPublic(context.req.raw)
      return next()
    }
    const { headers } = context.req.raw
    const identity = await identify(context.req.raw)
    if (identity === undefined) return next()
    const refusal =
      identity.via === 'cookie'
        ? cookieRefusal(headers, policy.credential, source)
        : identity.via === 'service cookie' && !hasConversationOrigin(headers, source)
          ? new SandwireError(
              'origin_refused',
              'A cookie needs an origin of this server or of a conversation page',
            )
          : undefined
    if (refusal !== undefined) throw refusal
    context.set('identity', identity)
    const limited = budget.refusal(identity.account, costOf(context.req.raw), nowMs())
    if (limited !== undefined) throw limited
    // Every other scope builds on `connect`.
    checkScope(identity, 'connect')
    checkScope(identity, policy.scope)
    return next()
  }
}

/** Refuses everything but health checks while the identity settings have a problem. */
export function refuseWithoutIdentity(problem: string | undefined): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    if (problem !== undefined && !HEALTH_ROUTES.includes(context.req.path))
      throw new SandwireError('no_issuer', `Cannot authenticate anyone: ${problem}`)
    return next()
  }
}
