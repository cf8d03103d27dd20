import { SandwireError } from '@sandwire/protocol'
import type { Context } from 'hono'
import { SIGN_IN_LIFE_MS, type UsedState } from '../account/sign-ins.ts'
import type { AccountIds } from '../auth/account-id.ts'
import { CLEAR_COOKIE, claimsOf, type CookieClaim, mintCookie, type SignIn } from '../auth/browser-sign-in.ts'
import { type CodeFlow, SignInError, type SignInProblem } from '../auth/code-flow.ts'
import { type Identity, unauthorized } from '../auth/identity.ts'
import { LOCAL_IDENTITY, type RedeemCode } from '../auth/local-identity.ts'
import { CLEAR_LOGIN_COOKIE, type LoginState, type LoginStates, returnPathOf } from '../auth/login-state.ts'
import { mintSecret, sha256Hex } from '../bytes.ts'
import type { RequestBudget } from '../http/rate-limits.ts'
import { respondPage } from '../http/respond.ts'
import { mayGetCookie, type SourceSettings } from '../http/source-check.ts'
import type { Log } from '../log.ts'
import { unwrap } from '../outcome.ts'
import { signInFailedPage } from '../pages/sign-in.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { type App, type AppEnv, identityOf, setSignedIn } from './context.ts'
import { body, endpoint, type GuardOf } from './endpoint.ts'
import { signInBody } from './schemas.ts'

const START = '/signin/start'
/** Without the id of an issuer. */
const CALLBACK = '/signin/callback'

/** Length of a login id. */
const LOGIN_CHARS = 22
/** How long the sign-out of a token without an expiry is remembered. */
const TOKEN_LIFE_MS = 24 * 60 * 60 * 1000

const STATUS: Readonly<Record<SignInProblem, number>> = {
  stale: 400,
  redirect_uri: 400,
  denied: 403,
  invalid_response: 502,
  unavailable: 503,
  not_allowed: 403,
}

export interface SignInDependencies {
  readonly lookup: SandboxLookup
  readonly accounts: AccountIds
  readonly source: SourceSettings
  readonly budget: RequestBudget
  readonly nowMs: () => number
  readonly log: Log
  readonly redeem: RedeemCode
  /** The machine's owner can sign in with a link of the host. */
  readonly hasLocalIdentity: boolean
  /** By the issuer's id. */
  readonly flows: ReadonlyMap<string, CodeFlow>
  readonly states: LoginStates
}

interface NewSignIn {
  readonly user: Pick<SignIn, 'name' | 'scopes' | 'issuer' | 'issuerBinding'> & { readonly account: string }
  readonly nowMs: number
  /** The login state that led here; each is accepted once. */
  readonly state?: UsedState
}

/**
 * Signs a browser in with a new secret; returns the `Set-Cookie` header and the login id. Ends the previous sign-ins of the
 * browser, whichever account they belong to: a cookie planted before the sign-in must not be valid after it.
 */
async function replaceSignIn(
  { lookup, accounts }: Pick<SignInDependencies, 'lookup' | 'accounts'>,
  previous: readonly CookieClaim[],
  { user, nowMs, state }: NewSignIn,
): Promise<{ readonly cookie: string; readonly login: string }> {
  const { account, name, scopes, issuer, issuerBinding } = user
  const { header, hash } = await mintCookie(account, SIGN_IN_LIFE_MS)
  const login = mintSecret().slice(0, LOGIN_CHARS)
  const times = { createdMs: nowMs, expiresMs: nowMs + SIGN_IN_LIFE_MS }
  const signIn = { login, name, scopes, issuer, issuerBinding, ...times }
  unwrap(await lookup.account(account).signIn(signIn, hash, state))
  for (const claim of previous) {
    if (!(await accounts.isMinted(claim.account))) continue
    const owner = lookup.account(claim.account)
    const known = unwrap(await owner.findSignIn(claim.hash))
    if (known !== null) unwrap(await owner.signOut(known.login))
  }
  return { cookie: header, login }
}

/** Ends the sign-in of the caller. The local token and the API token have none and stay valid. */
async function signOut(lookup: SandboxLookup, identity: Identity, nowMs: number): Promise<void> {
  const { account, login, token = login, issuedMs, expiresMs = nowMs + TOKEN_LIFE_MS } = identity
  if (login === undefined || token === undefined) return
  const object = lookup.account(account)
  const ended = unwrap(await object.signOut(login))
  if (ended !== null) return
  const issued = issuedMs === undefined ? {} : { issuedMs }
  unwrap(await object.endToken(login, { token, expiresMs, ...issued }))
}

/** Our origin under the host name that the browser uses. */
function originOf(request: Request, { publicOrigins }: SourceSettings): string {
  const host = request.headers.get('host')?.toLowerCase()
  const origin = publicOrigins.find((listed) => new URL(listed).host === host)
  if (origin === undefined) throw new SandwireError('host_refused', 'Cannot sign in at this host name')
  return origin
}

/** True if another site sent the browser here, which could sign a user in unasked. */
function isCrossSite(request: Request): boolean {
  const site = request.headers.get('sec-fetch-site')
  return site !== null && site !== 'same-origin' && site !== 'none'
}

function redirectTo(location: string, cookies: readonly string[] = []): Response {
  const headers = new Headers({ location })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return new Response(null, { status: 303, headers })
}

/** Sign-in with a code of the host, and sign-out. */
function addCodeRoutes(app: App, guardOf: GuardOf, deps: SignInDependencies): void {
  const { lookup, source, budget, nowMs, redeem, hasLocalIdentity } = deps

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/signin',
      request: { body: body(signInBody) },
      responses: { 204: { description: 'Signed in; sets the cookie' } },
    }),
    async (context) => {
      if (!mayGetCookie(context.req.raw.headers, 'owner', source))
        throw new SandwireError(
          'origin_refused',
          'Cannot sign in under this host name. Open the whole link that npx sandwire signin prints.',
        )
      const refusal = budget.unauthenticatedRefusal('sign-in', context.req.raw, nowMs())
      if (refusal !== undefined) throw refusal
      const { code } = context.req.valid('json')
      if (!hasLocalIdentity || !(await redeem(code, context.get('requestId'))))
        throw unauthorized('the sign-in link was used or has expired')
      const user = { ...LOCAL_IDENTITY, issuer: null, issuerBinding: null }
      const previous = await claimsOf(context.req.raw.headers)
      const { cookie, login } = await replaceSignIn(deps, previous, { user, nowMs: nowMs() })
      setSignedIn(context, { ...LOCAL_IDENTITY, login })
      context.header('set-cookie', cookie)
      return context.body(null, 204)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/signout',
      responses: { 204: { description: 'Signed out' } },
    }),
    async (context) => {
      await signOut(lookup, identityOf(context), nowMs())
      context.header('set-cookie', CLEAR_COOKIE)
      return context.body(null, 204)
    },
  )
}

/** Sign-in at an issuer: redirect there, and back with a code. */
function addIssuerRoutes(app: App, guardOf: GuardOf, deps: SignInDependencies): void {
  const { source, budget, nowMs, log, flows, states } = deps
  const route = (path: string) =>
    endpoint(guardOf, {
      method: 'get',
      path,
      hide: true,
      responses: { 303: { description: 'The next page' }, 200: { description: 'A page' } },
    })
  const checkBudget = (request: Request): void => {
    const refusal = budget.unauthenticatedRefusal('sign-in', request, nowMs())
    if (refusal !== undefined) throw refusal
  }
  /** Shows a page with the problem; it contains nothing of the request. */
  const respondProblem = (context: Context<AppEnv>, caught: unknown): Response => {
    if (!(caught instanceof SignInError)) throw caught
    const { problem, cause } = caught
    const detail = cause instanceof Error ? { cause: `${cause.name}: ${cause.message}` } : {}
    log.info('sign_in_failed', { request_id: context.get('requestId'), code: problem, ...detail })
    const response = respondPage(signInFailedPage(problem), { status: STATUS[problem] })
    response.headers.append('set-cookie', CLEAR_LOGIN_COOKIE)
    return response
  }
  const finish = async (context: Context<AppEnv>, started: LoginState): Promise<Response> => {
    const request = context.req.raw
    const flow = flows.get(started.issuer)
    if (flow === undefined) throw new SignInError('stale')
    const user = await flow.finish(new URL(request.url).searchParams, started)
    const state = { hash: await sha256Hex(started.state), expiresMs: started.expiresMs }
    const previous = [...(await claimsOf(request.headers)), ...(started.replaces ?? [])]
    const signIn = { user, nowMs: nowMs(), state }
    const { cookie, login } = await replaceSignIn(deps, previous, signIn).catch((caught: unknown) => {
      // The account has seen this state before.
      const isSpent = caught instanceof SandwireError && caught.code === 'unauthorized'
      throw isSpent ? new SignInError('stale', caught) : caught
    })
    setSignedIn(context, { ...user, login })
    return redirectTo(originOf(request, source) + started.to, [cookie, CLEAR_LOGIN_COOKIE])
  }

  app.openapi(route(START), async (context) => {
    const { raw } = context.req
    checkBudget(raw)
    const origin = originOf(raw, source)
    const issuer = context.req.query('issuer') ?? ''
    const flow = flows.get(issuer)
    if (flow === undefined || isCrossSite(raw)) return redirectTo(`${origin}/signin`)
    try {
      const to = returnPathOf(context.req.query('to'))
      const { location, state } = await flow.start(`${origin}${CALLBACK}/${issuer}`, to)
      // The browser does not send its strict cookie on the redirect back from the issuer.
      const replaces = await claimsOf(raw.headers)
      return redirectTo(location, [await states.seal({ ...state, replaces })])
    } catch (caught) {
      return respondProblem(context, caught)
    }
  })

  // One redirect URI per issuer: otherwise a malicious issuer could send the browser to another one, whose code control would
  // then send to the malicious one (RFC 9700, section 4.4.2.2).
  app.openapi(route(`${CALLBACK}/{issuer}`), async (context) => {
    const { raw } = context.req
    checkBudget(raw)
    try {
      const started = await states.open(raw.headers, nowMs())
      if (started?.redirectUri !== originOf(raw, source) + context.req.path) throw new SignInError('stale')
      return await finish(context, started)
    } catch (caught) {
      return respondProblem(context, caught)
    }
  })

  app.openapi(route(CALLBACK), (context) => {
    checkBudget(context.req.raw)
    return respondProblem(context, new SignInError('redirect_uri'))
  })
}

/** Routes that sign browsers in and out. */
export function addSignInRoutes(app: App, guardOf: GuardOf, deps: SignInDependencies): void {
  addCodeRoutes(app, guardOf, deps)
  addIssuerRoutes(app, guardOf, deps)
}
