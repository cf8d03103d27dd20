import { OpenAPIHono, type z } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import { SandwireError, SOFTWARE_VERSION } from '@sandwire/protocol'
import type { AccountIds } from './auth/account-id.ts'
import { firstOf } from './auth/authenticator.ts'
import { bearer } from './auth/bearer.ts'
import { browserCookie } from './auth/browser-cookie.ts'
import { openCodeFlows } from './auth/code-flow.ts'
import { findIdentityFault, type Secrets } from './auth/identity-fault.ts'
import type { Fetch } from './auth/issuer-fetch.ts'
import { guestToken } from './auth/guest-token.ts'
import type { SessionTokens } from './auth/session-token.ts'
import type { LoginStates } from './auth/login-state.ts'
import type { RedeemCode } from './auth/sign-in-codes.ts'
import { addPtyRoute } from './compat/pty.ts'
import { addCompatRoutes } from './compat/routes.ts'
import { CommandPolicy } from './commands/command-policy.ts'
import { hasGuests, isTrustedSignIn } from './auth/trusted-sign-in.ts'
import { whileWelcome } from './auth/while-welcome.ts'
import { ticket } from './auth/ticket.ts'
import { isProxiedPath } from './workspace-proxy/routes.ts'
import type { RateLimit } from './http/address-limit.ts'
import { AttachLimits } from './http/attach-limits.ts'
import { holdBody } from './http/hold-body.ts'
import { RequestBudget } from './http/request-budget.ts'
import { WorkspaceBudget } from './http/workspace-budget.ts'
import { unwrap } from './outcome.ts'
import { auditRequests } from './routes/audit-requests.ts'
import { addAttachRoutes } from './routes/attach.ts'
import { addAccountRoutes } from './routes/account.ts'
import { addAuditRoutes } from './routes/audit.ts'
import type { App, AppEnv } from './routes/context.ts'
import { addErrorResponses } from './routes/error-responses.ts'
import { guard } from './routes/guard.ts'
import { addGrantRoutes } from './routes/grants.ts'
import { addHealthRoutes } from './routes/health.ts'
import { identityGate } from './routes/identity-gate.ts'
import { addIdentityRoutes } from './routes/identity.ts'
import { addLogRoutes } from './routes/logs.ts'
import { addPageRoutes } from './routes/pages.ts'
import { type Policy, policyOf } from './routes/policies.ts'
import { addRedeemRoutes } from './routes/redeem.ts'
import { recordRequests } from './routes/record-request.ts'
import { addSandboxRoutes } from './routes/sandboxes.ts'
import { addSessionRoutes } from './routes/sessions.ts'
import { addIssuerSignInRoutes } from './routes/sign-in-issuer.ts'
import { addSignInRoutes } from './routes/sign-in.ts'
import { addSignInListRoutes } from './routes/sign-ins.ts'
import { sourceGate } from './routes/source-gate.ts'
import { addTicketRoutes } from './routes/tickets.ts'
import { addTemplateRoutes } from './routes/templates.ts'
import { addWorkbenchRoutes, type Assets } from './routes/workbench.ts'
import { withoutQuery } from './routes/without-query.ts'
import { addWorkspaceRoutes } from './routes/workspace.ts'
import type { Runtime } from './runtime.ts'
import type { Directory } from './sandbox/directory.ts'
import type { IdMint } from './sandbox/sandbox-id.ts'
import { SessionNames } from './sandbox/session-names.ts'

/** Largest body of a request. */
const MAX_BODY_BYTES = 256 * 1024
/** Where anybody may come without a credential. */
const MAX_STRANGERS_BODY_BYTES = 16 * 1024

export interface AppDependencies {
  readonly runtime: Runtime
  readonly directory: Directory
  readonly mint: IdMint
  readonly accounts: AccountIds
  readonly loginStates: LoginStates
  readonly sessionTokens: SessionTokens | undefined
  readonly secrets: Secrets
  /** The way out to issuers. */
  readonly askIssuer: Fetch
  /** The platform's own counter of what comes from where. */
  readonly rateLimit: RateLimit | undefined
  readonly mintRequestId: () => string
  readonly redeem: RedeemCode
  /** The files of the workbench; absent: it is not served here. */
  readonly assets: Assets | undefined
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
  loginStates,
  sessionTokens,
  secrets,
  askIssuer,
  rateLimit,
  mintRequestId,
  redeem,
  assets,
}: AppDependencies): App {
  const { config, log, metrics, nowMs } = runtime
  const app: App = new OpenAPIHono<AppEnv>({
    defaultHook: (result) => {
      if (!result.success) throw new SandwireError('bad_request', describeIssue(result.error))
    },
  })
  const hasLocalIdentity = config.localTokenSha256 !== undefined
  const takesGuests = hasGuests(config)
  const findSignIn = async (account: string, hash: string) =>
    unwrap(await directory.account(account).findSignIn(hash))
  const authenticator = firstOf([
    ...(takesGuests ? [guestToken({ accounts, find: findSignIn })] : []),
    whileWelcome(
      bearer({ ...config, ...secrets }, { accounts, fetchUrl: askIssuer, nowMs }),
      async (account, dated) => unwrap(await directory.account(account).isWelcome(dated)),
    ),
    browserCookie({
      accounts,
      find: ({ account, hash }) => findSignIn(account, hash),
      isTrusted: (signIn) => isTrustedSignIn(signIn, config),
    }),
  ])
  const exemptsLoopback = config.mode === 'local'
  const budget = new RequestBudget({ perMinute: config.limits.strangersPerMinutePerAddress, exemptsLoopback })
  const limits = new AttachLimits({
    perAddress: { perMinute: config.limits.attachesPerMinutePerAddress, exemptsLoopback },
    rateLimit,
    takeOfAccount: (account) => directory.account(account).takeAttach(),
    nowMs,
  })
  const commands = new CommandPolicy(config.commands)
  const sessionNames = new SessionNames(sessionTokens, config.provider, nowMs)
  const tickets = ticket({
    isMinted: (sandbox) => mint.isMinted(sandbox),
    take: async (sandbox, hash, origin) => unwrap(await directory.sandbox(sandbox).takeTicket(hash, origin)),
  })
  const guardOf = (policy: Policy): MiddlewareHandler<AppEnv> => {
    const admit = guard(policy, {
      source: config,
      authenticator,
      tickets,
      hasGuests: takesGuests,
      budget,
      nowMs,
    })
    const hold = holdBody(policy === 'public' ? MAX_STRANGERS_BODY_BYTES : MAX_BODY_BYTES)
    return (context, next) =>
      admit(context, async () => {
        // What streams into a sandbox is bounded on its way.
        await (isProxiedPath(context.req.path) ? next() : hold(context, next))
      })
  }

  if (config.tokenInUrl) log.warn('token_in_url')

  app.use(recordRequests({ log, metrics, nowMs, mintRequestId }))
  app.use(auditRequests({ directory, sessionNames, log, metrics, nowMs }))
  app.use(sourceGate(config))
  app.use(identityGate(findIdentityFault(config, secrets)))

  addHealthRoutes(app, guardOf, runtime)
  addWorkspaceRoutes(app, guardOf, {
    directory,
    defaultName: config.defaultName,
    isFolder: config.workspaceMode === 'local',
    budget: new WorkspaceBudget(config.limits.workspaceCostPerMinutePerUser),
    nowMs,
  })
  addCompatRoutes(app, guardOf, { directory, config, commands, mintId: () => crypto.randomUUID() })
  addIdentityRoutes(app, guardOf, config)
  addSandboxRoutes(app, guardOf, { directory, ...runtime })
  addSessionRoutes(app, guardOf, { directory, mint, commands, sessionNames })
  addLogRoutes(app, guardOf, directory)
  addAuditRoutes(app, guardOf, directory)
  addGrantRoutes(app, guardOf, { directory, mint, accounts, source: config })
  addRedeemRoutes(app, guardOf, { directory, mint, accounts, source: config, hasGuests: takesGuests, nowMs })
  addTicketRoutes(app, guardOf, { directory, sessionNames, source: config })
  const attaching = {
    directory,
    mint,
    defaultName: config.defaultName,
    limits,
    log,
    metrics,
    commands,
    sessionNames,
  }
  addAttachRoutes(app, guardOf, attaching)
  addPtyRoute(app, guardOf, attaching)
  addSignInRoutes(app, guardOf, {
    directory,
    accounts,
    source: config,
    budget,
    nowMs,
    redeem,
    hasLocalIdentity,
  })
  addSignInListRoutes(app, guardOf, directory)
  addAccountRoutes(app, guardOf, { directory, accounts })
  const flows = openCodeFlows(config.issuers, { accounts, fetchUrl: askIssuer, nowMs })
  addIssuerSignInRoutes(app, guardOf, {
    directory,
    accounts,
    source: config,
    budget,
    nowMs,
    log,
    flows,
    states: loginStates,
  })
  addTemplateRoutes(app, guardOf, commands)
  addPageRoutes(app, guardOf)
  addWorkbenchRoutes(app, guardOf, { assets, codings: config.assetCodings })
  addDocument(app, guardOf)

  addErrorResponses(app, runtime)
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
