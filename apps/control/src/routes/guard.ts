import { SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import { type Authenticator, type Identity, notAccepted, type Scope } from '../auth/authenticator.ts'
import { sha256Hex } from '../bytes.ts'
import type { RequestBudget } from '../http/request-budget.ts'
import { hasListedOrigin, type SourceSettings } from '../http/source-check.ts'
import type { AppEnv } from './context.ts'
import type { Credential, Policy } from './policies.ts'

export interface GuardDependencies {
  readonly source: SourceSettings
  readonly authenticator: Authenticator
  /** Tickets count where sockets are opened, and nowhere else. */
  readonly tickets: Authenticator
  /** Whether people without a credential may come for a link. */
  readonly hasGuests: boolean
  readonly budget: RequestBudget
  readonly nowMs: () => number
}

/** Why a cookie is not enough for this request, if it is not. */
function cookieRefusal(
  headers: Headers,
  credential: Credential,
  source: SourceSettings,
): SandwireError | undefined {
  switch (credential) {
    case 'socket':
      return notAccepted('a browser needs a ticket here')
    case 'write':
    case 'invited':
    case 'page socket':
      return hasListedOrigin(headers, source)
        ? undefined
        : new SandwireError('origin_refused', 'Cannot change anything without an origin of ours')
    case 'read':
      return hasListedOrigin(headers, source) || headers.get('sec-fetch-site') === 'same-origin'
        ? undefined
        : new SandwireError('origin_refused', 'Cannot read from another site')
  }
}

/** Throws `forbidden` unless the credential is good for this. */
export function checkScope({ scopes }: Pick<Identity, 'scopes'>, scope: Scope): void {
  if (!scopes.includes(scope))
    throw new SandwireError('forbidden', `Cannot do this: the credential is not good for "${scope}"`)
}

/** Hash of a bearer for which a signature has to be checked or an object asked; the others are compared with what is known. */
async function costlyBearer(headers: Headers): Promise<string | undefined> {
  const authorization = headers.get('authorization')
  return authorization?.includes('.') === true ? sha256Hex(authorization) : undefined
}

/** Lets a request through when its policy allows it. */
export function guard(policy: Policy, deps: GuardDependencies): MiddlewareHandler<AppEnv> {
  const { source, authenticator, tickets, hasGuests, budget, nowMs } = deps
  const refuseStranger = (request: Request, error: SandwireError): never => {
    throw budget.strangerRefusal(request, nowMs()) ?? error
  }
  const takesTickets =
    policy !== 'public' && (policy.credential === 'socket' || policy.credential === 'page socket')
  const isInvitation = policy !== 'public' && policy.credential === 'invited' && hasGuests
  /** Undefined: a guest. */
  const identify = async (request: Request): Promise<Identity | undefined> => {
    const { headers } = request
    // A cookie of a sign-in that ended is as good as none here, and whoever has it cannot remove it.
    const mayBeGuest = isInvitation && !headers.has('authorization')
    const hash = await costlyBearer(headers)
    const unseen = hash === undefined ? undefined : budget.checkRefusal(request, hash, nowMs())
    if (unseen !== undefined) throw unseen
    let identity: Identity | undefined
    try {
      identity = takesTickets ? await tickets.authenticate(headers) : undefined
      identity ??= await authenticator.authenticate(headers)
    } catch (caught) {
      if (!mayBeGuest) return refuseStranger(request, SandwireError.from(caught))
    }
    if (identity !== undefined && hash !== undefined) budget.noteGood(hash)
    if (identity !== undefined) return identity
    if (!mayBeGuest) return refuseStranger(request, notAccepted('no credential was sent'))
    const refusal = budget.guestRefusal(request, nowMs())
    if (refusal !== undefined) throw refusal
    return undefined
  }
  return async (context, next) => {
    if (policy === 'public') return next()
    const { headers } = context.req.raw
    const identity = await identify(context.req.raw)
    if (identity === undefined) return next()
    const refusal = identity.via === 'cookie' ? cookieRefusal(headers, policy.credential, source) : undefined
    if (refusal !== undefined) throw refusal
    context.set('identity', identity)
    const tooMuch = budget.refusal(identity.account, nowMs())
    if (tooMuch !== undefined) throw tooMuch
    // Whatever else a credential names is about what one is connected to.
    checkScope(identity, 'connect')
    checkScope(identity, policy.scope)
    return next()
  }
}
