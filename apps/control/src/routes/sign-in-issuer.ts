import { SandwireError } from '@sandwire/protocol'
import type { Context } from 'hono'
import type { AccountIds } from '../auth/account-id.ts'
import { claimsOf } from '../auth/browser-cookie.ts'
import { type CodeFlow, type SignInRefusal, SignInRefused } from '../auth/code-flow.ts'
import { FORGET_LOGIN, type LoginState, type LoginStates } from '../auth/login-state.ts'
import { returnPathOf } from '../auth/return-path.ts'
import { sha256Hex } from '../bytes.ts'
import type { RequestBudget } from '../http/request-budget.ts'
import type { SourceSettings } from '../http/source-check.ts'
import type { Log } from '../log.ts'
import { notSignedInPage } from '../pages/not-signed-in.ts'
import type { Directory } from '../sandbox/directory.ts'
import { type App, type AppEnv, setSignedIn } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { respondPage } from '../http/respond.ts'
import { replaceSignIn } from './replace-sign-in.ts'

const START = '/signin/start'
const CALLBACK = '/signin/callback'

/** What a refused sign-in answers with. */
const STATUS: Readonly<Record<SignInRefusal, number>> = {
  stale: 400,
  denied: 403,
  not_believed: 502,
  away: 503,
  not_allowed: 403,
}

export interface IssuerSignInDependencies {
  readonly directory: Directory
  readonly accounts: AccountIds
  readonly source: SourceSettings
  readonly budget: RequestBudget
  readonly nowMs: () => number
  readonly log: Log
  /** By the issuer's id. */
  readonly flows: ReadonlyMap<string, CodeFlow>
  readonly states: LoginStates
}

/** Our origin under the name that the browser knows us by. */
function originOf(request: Request, { publicOrigins }: SourceSettings): string {
  const host = request.headers.get('host')?.toLowerCase()
  const origin = publicOrigins.find((listed) => new URL(listed).host === host)
  if (origin === undefined) throw new SandwireError('host_refused', 'Cannot sign in under this name')
  return origin
}

/** Whether a page of another site sent the browser here: it could sign somebody in who did not ask for it. */
function isFromElsewhere(request: Request): boolean {
  const site = request.headers.get('sec-fetch-site')
  return site !== null && site !== 'same-origin' && site !== 'none'
}

function redirectTo(location: string, cookies: readonly string[] = []): Response {
  const headers = new Headers({ location })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return new Response(null, { status: 303, headers })
}

/** Signing a browser in through an issuer: away to its pages, and back with a code. */
export function addIssuerSignInRoutes(app: App, guardOf: GuardOf, deps: IssuerSignInDependencies): void {
  const { source, budget, nowMs, log, flows, states } = deps
  const route = (path: string) =>
    endpoint(guardOf, {
      method: 'get',
      path,
      hide: true,
      responses: { 303: { description: 'The next page' }, 200: { description: 'A page' } },
    })
  const takeBudget = (request: Request): void => {
    const refusal = budget.signInRefusal(request, nowMs())
    if (refusal !== undefined) throw refusal
  }
  /** Tells the person in one sentence; nothing of the request is in it. */
  const explain = (context: Context<AppEnv>, caught: unknown): Response => {
    if (!(caught instanceof SignInRefused)) throw caught
    const { why, cause } = caught
    const detail = cause instanceof Error ? { cause: `${cause.name}: ${cause.message}` } : {}
    log.info('sign_in_refused', { request_id: context.get('requestId'), code: why, ...detail })
    const response = respondPage(notSignedInPage(why), { status: STATUS[why] })
    response.headers.append('set-cookie', FORGET_LOGIN)
    return response
  }
  const finish = async (context: Context<AppEnv>, left: LoginState): Promise<Response> => {
    const request = context.req.raw
    const flow = flows.get(left.issuer)
    if (flow === undefined) throw new SignInRefused('stale')
    const person = await flow.finish(new URL(request.url).searchParams, left)
    const state = { hash: await sha256Hex(left.state), expiresMs: left.expiresMs }
    const signIn = { person, nowMs: nowMs(), state }
    const before = [...(await claimsOf(request.headers)), ...(left.replaces ?? [])]
    const replaced = replaceSignIn(deps, before, signIn).catch((caught: unknown) => {
      // The account knows this state already.
      const isSpent = caught instanceof SandwireError && caught.code === 'unauthorized'
      throw isSpent ? new SignInRefused('stale', caught) : caught
    })
    const { cookie, login } = await replaced
    setSignedIn(context, { ...person, login })
    return redirectTo(originOf(request, source) + left.to, [cookie, FORGET_LOGIN])
  }

  app.openapi(route(START), async (context) => {
    takeBudget(context.req.raw)
    const origin = originOf(context.req.raw, source)
    const flow = flows.get(context.req.query('issuer') ?? '')
    if (flow === undefined || isFromElsewhere(context.req.raw)) return redirectTo(`${origin}/signin`)
    try {
      const to = returnPathOf(context.req.query('to'))
      const { location, state } = await flow.start(origin + CALLBACK, to)
      // Coming back from another site, the browser keeps its cookie to itself.
      const replaces = await claimsOf(context.req.raw.headers)
      return redirectTo(location, [await states.seal({ ...state, replaces })])
    } catch (caught) {
      return explain(context, caught)
    }
  })

  app.openapi(route(CALLBACK), async (context) => {
    const { raw } = context.req
    takeBudget(raw)
    try {
      const left = await states.open(raw.headers, nowMs())
      if (left?.redirectUri !== originOf(raw, source) + CALLBACK) throw new SignInRefused('stale')
      return await finish(context, left)
    } catch (caught) {
      return explain(context, caught)
    }
  })
}
