import { SandwireError } from '@sandwire/protocol'
import { type Identity, notAccepted } from '../auth/authenticator.ts'
import type { AccountIds } from '../auth/account-id.ts'
import { claimsOf, FORGET_COOKIE } from '../auth/browser-cookie.ts'
import { LOCAL_IDENTITY } from '../auth/local-token.ts'
import type { RedeemCode } from '../auth/sign-in-codes.ts'
import type { RequestBudget } from '../http/request-budget.ts'
import { hasListedOrigin, type SourceSettings } from '../http/source-check.ts'
import { unwrap } from '../outcome.ts'
import type { Directory } from '../sandbox/directory.ts'
import { type App, identityOf, setSignedIn } from './context.ts'
import { body, endpoint, type GuardOf } from './endpoint.ts'
import { replaceSignIn } from './replace-sign-in.ts'
import { signInBody } from './schemas.ts'

/** For tokens that do not say when they end. */
const TOKEN_LIFE_MS = 24 * 60 * 60 * 1000

export interface SignInDependencies {
  readonly directory: Directory
  readonly accounts: AccountIds
  readonly source: SourceSettings
  readonly budget: RequestBudget
  readonly nowMs: () => number
  readonly redeem: RedeemCode
  /** Whether this machine's user is somebody here. */
  readonly hasLocalIdentity: boolean
}

/** Ends the sign-in that a request comes with. The token of a machine or of an operator comes with none, and stays good. */
async function signOut(directory: Directory, identity: Identity, nowMs: number): Promise<void> {
  const { account, login, token = login, issuedMs, expiresMs = nowMs + TOKEN_LIFE_MS } = identity
  if (login === undefined || token === undefined) return
  const object = directory.account(account)
  const ended = unwrap(await object.signOut(login))
  if (ended !== null) return
  const dated = issuedMs === undefined ? {} : { issuedMs }
  unwrap(await object.endToken(login, { token, expiresMs, ...dated }))
}

/** Signing a browser in with a code that the host printed, and out again. */
export function addSignInRoutes(app: App, guardOf: GuardOf, deps: SignInDependencies): void {
  const { directory, source, budget, nowMs, redeem, hasLocalIdentity } = deps

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/signin',
      request: { body: body(signInBody) },
      responses: { 204: { description: 'The answer sets the cookie' } },
    }),
    async (context) => {
      if (!hasListedOrigin(context.req.raw.headers, source))
        throw new SandwireError('origin_refused', 'Cannot sign in from this origin')
      const tooMuch = budget.signInRefusal(context.req.raw, nowMs())
      if (tooMuch !== undefined) throw tooMuch
      const { code } = context.req.valid('json')
      if (!hasLocalIdentity || !(await redeem(code, context.get('requestId'))))
        throw notAccepted('the link was used or has expired')
      const person = { ...LOCAL_IDENTITY, issuer: null, voucher: null }
      const before = await claimsOf(context.req.raw.headers)
      const { cookie, login } = await replaceSignIn(deps, before, { person, nowMs: nowMs() })
      setSignedIn(context, { ...LOCAL_IDENTITY, login })
      context.header('set-cookie', cookie)
      return context.body(null, 204)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/signout',
      responses: { 204: { description: 'The cookie is worth nothing any more' } },
    }),
    async (context) => {
      await signOut(directory, identityOf(context), nowMs())
      context.header('set-cookie', FORGET_COOKIE)
      return context.body(null, 204)
    },
  )
}
