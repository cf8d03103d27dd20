import { SandwireError } from '@sandwire/protocol'
import { SIGN_IN_LIFE_MS } from '../account/store.ts'
import { notAccepted } from '../auth/authenticator.ts'
import { FORGET_COOKIE, hashOfCookie, mintCookie } from '../auth/browser-cookie.ts'
import { LOCAL_ACCOUNT } from '../auth/local-token.ts'
import type { RedeemCode } from '../auth/sign-in-codes.ts'
import type { RequestBudget } from '../http/request-budget.ts'
import { hasListedOrigin, type SourceSettings } from '../http/source-check.ts'
import { unwrap } from '../outcome.ts'
import type { Directory } from '../sandbox/directory.ts'
import { type App, callOf } from './context.ts'
import { body, endpoint, type GuardOf } from './endpoint.ts'
import { signInBody } from './schemas.ts'

export interface SignInDependencies {
  readonly directory: Directory
  readonly source: SourceSettings
  readonly budget: RequestBudget
  readonly nowMs: () => number
  readonly redeem: RedeemCode
}

/** Signing a browser in with a code that the host printed, and out again. */
export function addSignInRoutes(app: App, guardOf: GuardOf, deps: SignInDependencies): void {
  const { directory, source, budget, nowMs, redeem } = deps

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
      if (!budget.takeAsStranger(nowMs()))
        throw new SandwireError('rate_limited', 'Cannot take more requests now')
      const { code } = context.req.valid('json')
      if (!(await redeem(code, context.get('requestId'))))
        throw notAccepted('the link was used or has expired')
      const { header, hash } = await mintCookie(SIGN_IN_LIFE_MS)
      unwrap(await directory.account(LOCAL_ACCOUNT).signIn(hash))
      context.header('set-cookie', header)
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
      const hash = await hashOfCookie(context.req.raw.headers)
      if (hash !== undefined) unwrap(await directory.account(callOf(context).identity).signOut(hash))
      context.header('set-cookie', FORGET_COOKIE)
      return context.body(null, 204)
    },
  )
}
