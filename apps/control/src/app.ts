import { OpenAPIHono, type z } from '@hono/zod-openapi'
import { SandwireError, SOFTWARE_VERSION } from '@sandwire/protocol'
import { bodyLimit } from 'hono/body-limit'
import { HTTPException } from 'hono/http-exception'
import { firstOf } from './auth/authenticator.ts'
import { browserCookie } from './auth/browser-cookie.ts'
import { LOCAL_ACCOUNT, localToken } from './auth/local-token.ts'
import type { RedeemCode } from './auth/sign-in-codes.ts'
import { refuseSocket } from './http/refuse-socket.ts'
import { RequestBudget } from './http/request-budget.ts'
import { COMMON_HEADERS, respondError } from './http/respond.ts'
import { checkSource } from './http/source-check.ts'
import { unwrap } from './outcome.ts'
import { isToldInFrame } from './routes/attach.ts'
import type { App, AppEnv } from './routes/context.ts'
import { guard } from './routes/guard.ts'
import { addHealthRoutes } from './routes/health.ts'
import { addLogRoutes } from './routes/logs.ts'
import { addPageRoutes } from './routes/pages.ts'
import { POLICIES, type Policy } from './routes/policies.ts'
import { recordRequests } from './routes/record-request.ts'
import { addSandboxRoutes } from './routes/sandboxes.ts'
import { addSessionRoutes } from './routes/sessions.ts'
import { addSignInRoutes } from './routes/sign-in.ts'
import { addSocketRoutes } from './routes/sockets.ts'
import type { Runtime } from './runtime.ts'
import type { Directory } from './sandbox/directory.ts'
import type { IdMint } from './sandbox/sandbox-id.ts'

/** Largest body of a request. */
const MAX_BODY_BYTES = 256 * 1024

export interface AppDependencies {
  readonly runtime: Runtime
  readonly directory: Directory
  readonly mint: IdMint
  readonly mintRequestId: () => string
  readonly redeem: RedeemCode
}

/** Says which field is wrong, never what was in it. */
function describeIssue(error: z.ZodError): string {
  const [issue] = error.issues
  const keys = issue?.code === 'unrecognized_keys' ? issue.keys : issue?.path
  const name = (keys ?? []).join('.').replace(/\p{C}/gu, '').slice(0, 60)
  const why = issue?.code === 'unrecognized_keys' ? 'unknown' : 'not accepted'
  return name === '' ? `Cannot use the request: ${why}` : `Cannot use "${name}": ${why}`
}

/** The router throws errors of its own for bodies that are not JSON. */
function toSandwireError(caught: Error): SandwireError {
  return caught instanceof HTTPException && caught.status < 500
    ? new SandwireError('bad_request', 'Cannot read the body: not JSON')
    : SandwireError.from(caught)
}

/** Whether a path is served under another method. */
function isServedOtherwise(pathname: string): boolean {
  return Object.keys(POLICIES).some((route) => {
    const pattern = route.slice(route.indexOf(' ') + 1).split('/')
    const parts = pathname.split('/')
    return (
      parts.length === pattern.length &&
      pattern.every((part, at) => part.startsWith(':') || part === parts[at])
    )
  })
}

/** The whole public surface: source, then credential, then the route. */
export function createApp({ runtime, directory, mint, mintRequestId, redeem }: AppDependencies): App {
  const { config, log, metrics, nowMs } = runtime
  const app: App = new OpenAPIHono<AppEnv>({
    defaultHook: (result) => {
      if (!result.success) throw new SandwireError('bad_request', describeIssue(result.error))
    },
  })
  const authenticator = firstOf([
    localToken(config.localTokenSha256),
    browserCookie(async (hash) => unwrap(await directory.account(LOCAL_ACCOUNT).isSignedIn(hash))),
  ])
  const budget = new RequestBudget()
  const guardOf = (policy: Policy) => guard(policy, { source: config, authenticator, budget, nowMs })

  app.use(recordRequests({ log, metrics, nowMs, mintRequestId }))
  app.use(async (context, next) => {
    const refusal = checkSource(context.req.raw.headers, config)
    if (refusal !== undefined) throw refusal
    // A URL ends up in histories and logs; a credential in one is burnt, so it is never accepted.
    if (new URL(context.req.url).searchParams.has('token'))
      throw new SandwireError('bad_request', 'Cannot use parameter "token": a token travels in a header')
    await next()
    if (context.res.status !== 101)
      for (const [name, value] of Object.entries(COMMON_HEADERS))
        if (!context.res.headers.has(name)) context.res.headers.set(name, value)
  })
  app.use(
    bodyLimit({
      maxSize: MAX_BODY_BYTES,
      onError: () => {
        throw new SandwireError('frame_too_large', `Cannot read the body: more than ${MAX_BODY_BYTES} bytes`)
      },
    }),
  )

  addHealthRoutes(app, guardOf, runtime)
  addSandboxRoutes(app, guardOf, directory)
  addSessionRoutes(app, guardOf, { directory, mint })
  addLogRoutes(app, guardOf, directory)
  addSocketRoutes(app, guardOf, { directory, mint, defaultName: config.defaultName, log, metrics })
  addSignInRoutes(app, guardOf, { directory, source: config, budget, nowMs, redeem })
  addPageRoutes(app, guardOf)
  addDocument(app, guardOf)

  app.notFound((context) => {
    const { pathname } = new URL(context.req.url)
    throw isServedOtherwise(pathname)
      ? new SandwireError('method_not_allowed', 'Cannot use this method here')
      : new SandwireError('not_found', 'No such route')
  })
  app.onError((caught, context) => {
    const error = toSandwireError(caught)
    const requestId = context.get('requestId')
    metrics.count('sandwire_errors_total', { code: error.code })
    const cause = error.code === 'internal' ? { cause: String(error.cause) } : {}
    log.info('refused', { request_id: requestId, code: error.code, ...cause })
    return isToldInFrame(context.req.raw, error.code, context.get('identity') !== undefined)
      ? refuseSocket(error, requestId)
      : respondError(error, requestId)
  })
  return app
}

function addDocument(app: App, guardOf: (policy: Policy) => ReturnType<typeof guard>): void {
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' })
  app.get('/api/openapi.json', guardOf(POLICIES['GET /api/openapi.json']), (context) =>
    context.json(
      app.getOpenAPI31Document({
        openapi: '3.1.0',
        info: { title: 'Sandwire', version: SOFTWARE_VERSION, license: { name: 'Apache-2.0' } },
      }),
    ),
  )
}
