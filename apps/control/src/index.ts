import { WorkerEntrypoint } from 'cloudflare:workers'
import { createApp } from './app.ts'
import { redeemAtHost } from './auth/local-identity.ts'
import { readSecrets } from './auth/service-token.ts'
import { gatewayGrantsOf } from './credentials/grants.ts'
import type { Env } from './env.ts'
import { isFromProxy, trustProxy, withoutProxyHeaders } from './http/client-address.ts'
import { hasAmbiguousLength, refuseAndClose } from './http/framing.ts'
import type { App } from './routes/context.ts'
import { checkTui, findTui, readTuiUsage } from './run/agent-tui.ts'
import { runtimeOf } from './runtime.ts'
import { SandboxLookup } from './sandbox/sandbox-lookup.ts'

export { Egress } from './providers/container/egress.ts'
export { AccountObject } from './account/object.ts'
export { Gateway } from './credentials/gateway.ts'
export { ConversationObject } from './conversation/object.ts'
export { GatewayGrantObject } from './credentials/grant-object.ts'
export { MachineObject } from './machine/object.ts'
export { RunObject as ClaudeSandbox } from './run/object.ts'
export { SandboxObject } from './sandbox/object.ts'

/** The app of each environment, created once per isolate. */
const apps = new WeakMap<Env, App>()

async function appOf(env: Env): Promise<App> {
  const known = apps.get(env)
  if (known !== undefined) return known
  const runtime = runtimeOf(env)
  const { mint, accounts, loginStates, sessionTokens } = await runtime.keys()
  const app = createApp({
    runtime,
    mint,
    accounts,
    loginStates,
    sessionTokens,
    lookup: new SandboxLookup(env, mint),
    secrets: readSecrets(env),
    fetchIssuer: (url, init) => (env.ISSUERS === undefined ? fetch(url, init) : env.ISSUERS.fetch(url, init)),
    rateLimit: env.RATE_LIMIT,
    mintRequestId: () => crypto.randomUUID(),
    grants: gatewayGrantsOf(env),
    agentTuis: {
      find: (cmd) => findTui(runtime.config, cmd),
      check: (agent) => checkTui(env, agent),
      usage: (session) => readTuiUsage(env, session),
    },
    assets: env.ASSETS,
    redeem: redeemAtHost((url, init) =>
      env.HOST === undefined ? Promise.reject(new Error('No host is configured')) : env.HOST.fetch(url, init),
    ),
  })
  apps.set(env, app)
  return app
}

/** Environments in which a proxy was reported. */
const reportedProxies = new WeakSet<Env>()

/** Logs once that a proxy passes client addresses that are not used. The host tells the operator. */
function reportUnusedProxy(env: Env, request: Request): void {
  if (reportedProxies.has(env) || !isFromProxy(request)) return
  reportedProxies.add(env)
  runtimeOf(env).log.warn('proxy_header_not_configured')
}

/** The public entrypoint. */
export class Public extends WorkerEntrypoint<Env> {
  override async fetch(request: Request): Promise<Response> {
    if (hasAmbiguousLength(request.headers)) return refuseAndClose(crypto.randomUUID())
    const { clientAddressHeader } = runtimeOf(this.env).config
    if (clientAddressHeader === undefined) reportUnusedProxy(this.env, request)
    const trusted =
      clientAddressHeader === undefined
        ? withoutProxyHeaders(request)
        : trustProxy(request, clientAddressHeader)
    const app = await appOf(this.env)
    return app.fetch(trusted, this.env, this.ctx)
  }
}

/** The default entrypoint, such as miniflare's own port, serves nothing. */
// oxlint-disable-next-line import/no-default-export -- workerd requires one
export default {
  fetch: (): Response => new Response(null, { status: 404 }),
} satisfies ExportedHandler
