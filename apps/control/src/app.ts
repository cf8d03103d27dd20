import { OpenAPIHono, type z } from '@hono/zod-openapi'
import { SandwireError, SOFTWARE_VERSION } from '@sandwire/protocol'
import { bodyLimit } from 'hono/body-limit'
import type { AccountIds } from './auth/account-id.ts'
import { firstOf } from './auth/authenticator.ts'
import { bearer } from './auth/bearer.ts'
import { browserCookie } from './auth/browser-cookie.ts'
import { findIdentityFault, type Secrets } from './auth/identity-fault.ts'
import type { Fetch } from './auth/issuer-fetch.ts'
import type { RedeemCode } from './auth/sign-in-codes.ts'
import { RequestBudget } from './http/request-budget.ts'
import { unwrap } from './outcome.ts'
import { addAuditRoutes } from './routes/audit.ts'
import type { App, AppEnv } from './routes/context.ts'
import { addFailures } from './routes/failures.ts'
import { guard } from './routes/guard.ts'
import { addHealthRoutes } from './routes/health.ts'
import { identityGate } from './routes/identity-gate.ts'
import { addIdentityRoutes } from './routes/identity.ts'
import { addLogRoutes } from './routes/logs.ts'
import { addPageRoutes } from './routes/pages.ts'
import { type Policy, policyOf } from './routes/policies.ts'
import { recordRequests } from './routes/record-request.ts'
import { addSandboxRoutes } from './routes/sandboxes.ts'
import { addSessionRoutes } from './routes/sessions.ts'
import { addSignInRoutes } from './routes/sign-in.ts'
import { addSignInListRoutes } from './routes/sign-ins.ts'
import { addSocketRoutes } from './routes/sockets.ts'
import { sourceGate } from './routes/source-gate.ts'
import { withoutQuery } from './routes/without-query.ts'
import type { Runtime } from './runtime.ts'
import type { Directory } from './sandbox/directory.ts'
import type { IdMint } from './sandbox/sandbox-id.ts'

/** Largest body of a request. */
const MAX_BODY_BYTES = 256 * 1024

export interface AppDependencies {
  readonly runtime: Runtime
  readonly directory: Directory
  readonly mint: IdMint
  readonly accounts: AccountIds
  readonly secrets: Secrets
  /** The way out to issuers. */
  readonly askIssuer: Fetch
  readonly mintRequestId: () => string
  readonly redeem: RedeemCode
}

/** Why a field is wrong: in the words of its schema, where they are ours. */
function whyOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue?.code === 'unrecognized_keys') return 'unknown'
  if (issue?.code === 'invalid_value') return `expected ${issue.values.map(String).join(' or ')}`
  return issue?.message.startsWith('expected ') === true ? issue.message : 'not accepted'
}

/** Says which field is wrong and what it may be, never what was in it. */
function describeIssue(error: z.ZodError): string {
  const [issue] = error.issues
  const keys = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : issue?.path
  const name = (keys ?? []).join('.').replace(/\p{C}/gu, '').slice(0, 60)
  const why = whyOf(issue)
  return name === '' ? `Cannot use the request: ${why}` : `Cannot use "${name}": ${why}`
}

/** The whole public surface: source, then credential, then the route. */
export function createApp({
  runtime,
  directory,
  mint,
  accounts,
  secrets,
  askIssuer,
  mintRequestId,
  redeem,
}: AppDependencies): App {
  const { config, log, metrics, nowMs } = runtime
  const app: App = new OpenAPIHono<AppEnv>({
    defaultHook: (result) => {
      if (!result.success) throw new SandwireError('bad_request', describeIssue(result.error))
    },
  })
  const hasLocalIdentity = config.localTokenSha256 !== undefined
  const authenticator = firstOf([
    bearer({ ...config, ...secrets }, { accounts, fetchUrl: askIssuer, nowMs }),
    browserCookie({
      accounts,
      find: async ({ account, hash }) => unwrap(await directory.account(account).findSignIn(hash)),
      isTrusted: (issuer) =>
        issuer === null ? hasLocalIdentity : config.issuers.some(({ id }) => id === issuer),
    }),
  ])
  const budget = new RequestBudget()
  const guardOf = (policy: Policy) => guard(policy, { source: config, authenticator, budget, nowMs })

  app.use(recordRequests({ log, metrics, nowMs, mintRequestId }))
  app.use(sourceGate(config))
  app.use(identityGate(findIdentityFault(config, secrets)))
  app.use(
    bodyLimit({
      maxSize: MAX_BODY_BYTES,
      onError: () => {
        throw new SandwireError('frame_too_large', `Cannot read the body: more than ${MAX_BODY_BYTES} bytes`)
      },
    }),
  )

  addHealthRoutes(app, guardOf, runtime)
  addIdentityRoutes(app, guardOf, config)
  addSandboxRoutes(app, guardOf, { directory, isolationOf: runtime.isolationOf })
  addSessionRoutes(app, guardOf, { directory, mint })
  addLogRoutes(app, guardOf, directory)
  addAuditRoutes(app, guardOf, directory)
  addSocketRoutes(app, guardOf, { directory, mint, defaultName: config.defaultName, log, metrics })
  addSignInRoutes(app, guardOf, { directory, source: config, budget, nowMs, redeem, hasLocalIdentity })
  addSignInListRoutes(app, guardOf, directory)
  addPageRoutes(app, guardOf)
  addDocument(app, guardOf)

  addFailures(app, runtime)
  return app
}

function addDocument(app: App, guardOf: (policy: Policy) => ReturnType<typeof guard>): void {
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' })
  app.get('/api/openapi.json', guardOf(policyOf('get', '/api/openapi.json')), withoutQuery, (context) =>
    context.json(
      app.getOpenAPI31Document({
        openapi: '3.1.0',
        info: { title: 'Sandwire', version: SOFTWARE_VERSION, license: { name: 'Apache-2.0' } },
      }),
    ),
  )
}
