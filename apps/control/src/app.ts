import { OpenAPIHono, type z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import type { AccountIds } from './auth/account-id.ts'
import { createBearerAuthenticator, firstOf, refuseEndedSignIns } from './auth/authenticator.ts'
import { acceptsGuests, createCookieAuthenticator, isTrustedSignIn } from './auth/browser-sign-in.ts'
import { createCodeFlows } from './auth/code-flow.ts'
import { createGuestAuthenticator } from './auth/guest.ts'
import type { Authenticator } from './auth/identity.ts'
import type { Fetch } from './auth/issuer-client.ts'
import type { RedeemCode } from './auth/local-identity.ts'
import type { LoginStates } from './auth/login-state.ts'
import { findIdentityProblem, type Secrets } from './auth/service-token.ts'
import type { SessionTokens } from './auth/session-token.ts'
import { createServiceCookieAuthenticator } from './auth/service-cookie.ts'
import { createTicketAuthenticator } from './auth/ticket.ts'
import { CommandPolicy } from './commands/command-policy.ts'
import { hasOwnClaude } from './compat/capabilities.ts'
import { addClaudeStreamRoute } from './compat/claude-stream.ts'
import { addPtyRoute } from './compat/pty.ts'
import { addCompatRoutes } from './compat/routes.ts'
import type { GatewayGrants } from './credentials/grants.ts'
import { Callers } from './http/callers.ts'
import { allowConversationPages } from './http/cors.ts'
import { AttachLimits, type RateLimit, RequestBudget, WorkspaceBudget } from './http/rate-limits.ts'
import { holdBody } from './http/request-body.ts'
import { addResponseHeaders } from './http/respond.ts'
import { checkRequestSource } from './http/source-check.ts'
import { unwrap } from './outcome.ts'
import { addAccountRoutes } from './routes/account.ts'
import { addAttachRoutes, type AttachDependencies } from './routes/attach.ts'
import { admitRequests } from './routes/admission.ts'
import { auditRequests } from './routes/request-audit.ts'
import { addAuditRoutes } from './routes/audit.ts'
import type { App, AppEnv } from './routes/context.ts'
import { addConversationRoutes } from './routes/conversations.ts'
import { addErrorResponses } from './routes/error-responses.ts'
import { addGrantRoutes } from './routes/grants.ts'
import { guard, refuseWithoutIdentity } from './routes/guard.ts'
import { addHealthRoutes } from './routes/health.ts'
import { addOpenApiRoute } from './routes/openapi.ts'
import { addPageRoutes } from './routes/pages.ts'
import type { Policy } from './routes/policies.ts'
import { recordRequests } from './routes/request-log.ts'
import { addRedeemRoutes } from './routes/redeem.ts'
import { addRunRoutes } from './routes/runs.ts'
import { addCheckpointRoutes } from './routes/checkpoints.ts'
import { addSandboxRoutes } from './routes/sandboxes.ts'
import { addSessionRoutes, type SessionRouteDependencies } from './routes/sessions.ts'
import { addSignInRoutes } from './routes/sign-in.ts'
import { addTemplateRoutes } from './routes/templates.ts'
import { addTicketRoutes } from './routes/tickets.ts'
import { addUsageRoutes } from './routes/usage.ts'
import { addRetentionRoutes } from './routes/retention.ts'
import { addVersionFileRoutes } from './routes/version-files.ts'
import { addWorkbenchRoutes, type Assets } from './routes/workbench.ts'
import { addWorkspaceRoutes } from './routes/workspace.ts'
import { CLAUDE, providerOf } from './run/agents.ts'
import type { Runtime } from './runtime.ts'
import type { SandboxLookup } from './sandbox/sandbox-lookup.ts'
import type { IdMint } from './sandbox/sandbox-id.ts'
import { SessionNames } from './sandbox/session-names.ts'
import { isProxiedPath } from './workspace-proxy/routes.ts'

/** Largest body of a request. */
const MAX_BODY_BYTES = 256 * 1024
/** Largest body of a request to a public route. */
const MAX_PUBLIC_BODY_BYTES = 16 * 1024

export interface AppDependencies {
  readonly runtime: Runtime
  readonly lookup: SandboxLookup
  readonly mint: IdMint
  readonly accounts: AccountIds
  readonly loginStates: LoginStates
  readonly sessionTokens: SessionTokens | undefined
  readonly secrets: Secrets
  readonly fetchIssuer: Fetch
  /** The platform's rate limiter by network address; absent: each isolate counts its own. */
  readonly rateLimit: RateLimit | undefined
  readonly mintRequestId: () => string
  /** Credential gateway of runs. */
  readonly grants: Pick<GatewayGrants, 'check' | 'isConfigured'>
  readonly agentTuis: AttachDependencies['agentTuis'] & SessionRouteDependencies['agentTuis']
  readonly redeem: RedeemCode
  /** The files of the workbench; absent: it is not served. */
  readonly assets: Assets | undefined
}

/** The problem of a field; the schema's own message only if we wrote it. */
function problemOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue?.code === 'unrecognized_keys') return 'unknown'
  if (issue?.code === 'invalid_value') return `expected ${issue.values.map(String).join(' or ')}`
  return issue?.message.startsWith('expected ') === true ? issue.message : 'not accepted'
}

/** Names the field and what it may be, never its value. */
function requestError(error: z.ZodError): SandwireError {
  const [issue] = error.issues
  const keys = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : issue?.path
  const field = (keys ?? []).join('.').replace(/\p{C}/gu, '').slice(0, 60)
  const problem = problemOf(issue)
  if (field === '') return new SandwireError('bad_request', `Cannot use the request: ${problem}`)
  return new SandwireError('bad_request', `Cannot use "${field}": ${problem}`, {
    details: { field, problem },
  })
}

/** Authenticates by guest token, bearer token or cookie. */
function createAuthenticator({
  runtime: { config, nowMs },
  lookup,
  accounts,
  secrets,
  fetchIssuer,
}: AppDependencies): Authenticator {
  const findSignIn = async (account: string, hash: string) =>
    unwrap(await lookup.account(account).findSignIn(hash))
  const bearer = createBearerAuthenticator(
    { ...config, ...secrets },
    { accounts, fetchUrl: fetchIssuer, nowMs },
  )
  return firstOf([
    ...(acceptsGuests(config) ? [createGuestAuthenticator({ accounts, find: findSignIn })] : []),
    refuseEndedSignIns(bearer, async (account, token) =>
      unwrap(await lookup.account(account).acceptsToken(token)),
    ),
    createCookieAuthenticator({
      accounts,
      find: ({ account, hash }) => findSignIn(account, hash),
      isTrusted: (signIn) => isTrustedSignIn(signIn, config),
    }),
  ])
}

/** The public HTTP API. Every request passes the source check, then authentication, then its route. */
export function createApp(deps: AppDependencies): App {
  const { runtime, lookup, mint, accounts, loginStates, secrets, fetchIssuer, redeem, assets } = deps
  const { config, log, metrics, nowMs, sleep } = runtime
  const app: App = new OpenAPIHono<AppEnv>({
    defaultHook: (result) => {
      if (!result.success) throw requestError(result.error)
    },
  })
  const hasGuests = acceptsGuests(config)
  const authenticator = createAuthenticator(deps)
  const tickets = createTicketAuthenticator({
    isMinted: (sandbox) => mint.isMinted(sandbox),
    take: async (sandbox, hash, origin) => unwrap(await lookup.sandbox(sandbox).takeTicket(hash, origin)),
  })
  const serviceCookies = createServiceCookieAuthenticator(authenticator)
  const exemptsLoopback = config.mode === 'local'
  const budget = new RequestBudget({ perMinute: config.limits.strangersPerMinutePerAddress, exemptsLoopback })
  const callers = new Callers()
  const limits = new AttachLimits({
    perAddress: { perMinute: config.limits.attachesPerMinutePerAddress, exemptsLoopback },
    rateLimit: deps.rateLimit,
    takeOfAccount: (account) => lookup.account(account).takeAttach(),
    nowMs,
  })
  const commands = new CommandPolicy(config.commands)
  const sessionNames = new SessionNames(deps.sessionTokens, nowMs)
  const guardOf = (policy: Policy): MiddlewareHandler<AppEnv> => {
    const admit = guard(policy, {
      source: config,
      authenticator,
      tickets,
      serviceCookies,
      hasGuests,
      budget,
      callers,
      nowMs,
    })
    const hold = holdBody(policy === 'public' ? MAX_PUBLIC_BODY_BYTES : MAX_BODY_BYTES)
    return (context, next) =>
      admit(context, async () => {
        // Bodies that stream into a sandbox are limited by the workspace proxy.
        await (isProxiedPath(context.req.path) ? next() : hold(context, next))
      })
  }

  if (config.tokenInUrl) log.warn('token_in_url')

  app.use(recordRequests({ log, metrics, nowMs, mintRequestId: deps.mintRequestId }))
  app.use(admitRequests({ callers, nowMs, sleep }))
  app.use(auditRequests({ lookup, sessionNames, log, metrics, nowMs, sleep, mintId: deps.mintRequestId }))
  app.use(addResponseHeaders(config))
  app.use(allowConversationPages(config))
  app.use(checkRequestSource(config))
  app.use(refuseWithoutIdentity(findIdentityProblem(config, secrets)))

  addHealthRoutes(app, guardOf, {
    ...runtime,
    machineUsage: async () => unwrap(await lookup.machine().usage()),
    hasClaude: () => hasOwnClaude(config) || deps.grants.isConfigured(providerOf(config.runs, CLAUDE)),
  })
  addWorkspaceRoutes(app, guardOf, {
    lookup,
    defaultName: config.defaultName,
    hasOneSandbox: config.hasOneSandbox,
    budget: new WorkspaceBudget(config.limits.workspaceCostPerMinutePerUser),
    commands,
    nowMs,
  })
  addCompatRoutes(app, guardOf, {
    lookup,
    config,
    commands,
    grants: deps.grants,
    mintId: () => crypto.randomUUID(),
  })
  addSandboxRoutes(app, guardOf, { lookup, ...runtime })
  addCheckpointRoutes(app, guardOf, { lookup, ...runtime })
  addVersionFileRoutes(app, guardOf, { lookup, ...runtime })
  addRetentionRoutes(app, guardOf, lookup)
  addSessionRoutes(app, guardOf, { lookup, mint, commands, sessionNames, agentTuis: deps.agentTuis })
  addRunRoutes(app, guardOf, { lookup, mint, commands, grants: deps.grants, ...runtime })
  addConversationRoutes(app, guardOf, { lookup, mint, commands, grants: deps.grants, limits, ...runtime })
  addAuditRoutes(app, guardOf, lookup)
  addGrantRoutes(app, guardOf, { lookup, mint, accounts, source: config, hasGuests })
  addRedeemRoutes(app, guardOf, { lookup, mint, accounts, source: config, hasGuests, nowMs })
  addTicketRoutes(app, guardOf, { lookup, sessionNames, source: config })
  const { defaultName } = config
  const attachDeps = {
    lookup,
    mint,
    defaultName,
    limits,
    log,
    metrics,
    commands,
    sessionNames,
    sessionSettings: config.sessions,
    agentTuis: deps.agentTuis,
  }
  addAttachRoutes(app, guardOf, attachDeps)
  addPtyRoute(app, guardOf, attachDeps)
  addClaudeStreamRoute(app, guardOf, { ...attachDeps, ...runtime, grants: deps.grants })
  addSignInRoutes(app, guardOf, {
    lookup,
    accounts,
    source: config,
    budget,
    nowMs,
    log,
    redeem,
    hasLocalIdentity: config.localTokenSha256 !== undefined,
    flows: createCodeFlows(config.issuers, { accounts, fetchUrl: fetchIssuer, nowMs }),
    states: loginStates,
  })
  addAccountRoutes(app, guardOf, { lookup, accounts, config })
  addUsageRoutes(app, guardOf, { lookup, ...runtime })
  addTemplateRoutes(app, guardOf, commands)
  addPageRoutes(app, guardOf)
  addWorkbenchRoutes(app, guardOf, { assets, codings: config.assetCodings })
  addOpenApiRoute(app, guardOf)

  addErrorResponses(app, runtime)
  return app
}
