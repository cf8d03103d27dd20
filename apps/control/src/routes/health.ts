import { z } from '@hono/zod-openapi'
import { SPRITES_PROBLEMS, type SpritesProblem } from '@sandwire/internal-api'
import { type Amounts, RESOURCES } from '@sandwire/operator-settings'
import { SOFTWARE_VERSION } from '@sandwire/protocol'
import { COMMON_HEADERS } from '../http/respond.ts'
import type { Ceilings } from '../ceilings/ceilings.ts'
import type { Config } from '../config.ts'
import type { Metrics } from '../metrics.ts'
import type { Breaker, Breakers } from '../providers/breaker.ts'
import { cacheHealth } from '../providers/health-cache.ts'
import type { Provider } from '../providers/provider.ts'
import type { SandboxdMetrics } from '../sandbox/sandboxd-metrics.ts'
import type { VersionMetrics } from '../versions/version-metrics.ts'
import type { App } from './context.ts'
import { describeWorkspace, workspaceFeatures, workspaceMode } from '../compat/capabilities.ts'
import { endpoint, type GuardOf, json } from './endpoint.ts'

const alive = z
  .object({
    status: z.literal('ok'),
    version: z.string(),
    workspace: z.string().openapi({ description: 'Path of the workspace as processes in a sandbox see it.' }),
    workspace_mode: workspaceMode,
    features: workspaceFeatures,
  })
  .openapi('Health')
const breakerState = z.enum(['closed', 'open', 'half-open'])
const readiness = z
  .object({
    status: z.enum(['ok', 'unavailable']),
    version: z.string(),
    dependencies: z.object({
      provider: z.object({
        status: z.enum(['ok', 'unavailable']),
        breaker: breakerState,
        code: z.string().nullable(),
        reason: z
          .enum(Object.keys(SPRITES_PROBLEMS) as SpritesProblem[])
          .optional()
          .openapi({
            description: 'Why the Sprites API cannot be used; only with that provider.',
          }),
        isolation: z.string().nullable(),
      }),
      disk: z.object({ status: z.enum(['ok', 'low', 'full', 'unknown']) }).openapi({
        description:
          'The disk of the data folder. `low`: no new sandbox fits. `full`: the server uses the space that it held back for itself. `unknown`: the provider does not say.',
      }),
      workspaces: z.object({ breaker: breakerState, open: z.int() }).openapi({
        description: 'Sandboxes whose workspace does not respond: the worst state, and how many are open.',
      }),
    }),
  })
  .openapi('Readiness')

export interface HealthDependencies {
  readonly config: Config
  readonly provider: Pick<Provider, 'health'>
  readonly breaker: Breaker
  readonly workspaceBreakers: Breakers
  readonly metrics: Metrics
  readonly sandboxdMetrics: Pick<SandboxdMetrics, 'collect'>
  readonly versionMetrics: Pick<VersionMetrics, 'collect'>
  readonly nowMs: () => number
  readonly ceilings: Ceilings
  /** What the sandboxes of all accounts use. */
  readonly machineUsage: () => Promise<MachineUse>
  /** The server has a credential for Claude Code. */
  readonly hasClaude: () => boolean
}

/** What all accounts use, and how many there are. */
type MachineUse = Amounts & { readonly accounts: number }

/** Sets the gauges of the machine. They stay as they are while its object does not respond. */
async function measureUsage({ metrics, ceilings, machineUsage }: HealthDependencies): Promise<void> {
  const usage = await machineUsage().catch(() => undefined)
  if (usage === undefined) return
  const { accounts, ...amounts } = usage
  metrics.set('sandwire_usage_accounts', accounts)
  for (const resource of RESOURCES) {
    const { [resource]: used } = amounts
    if (used === undefined) continue
    metrics.set('sandwire_usage', used, { resource })
    metrics.set('sandwire_ceiling', ceilings.machine[resource] ?? Number.POSITIVE_INFINITY, { resource })
  }
}

/** Counts the dependencies that a check found unavailable. */
function recordReadiness(
  metrics: Metrics,
  {
    provider,
    disk,
  }: {
    readonly provider: { readonly code: string | null; readonly reason?: string }
    readonly disk: { readonly status: string }
  },
): void {
  const reasons = [
    ...(provider.code === null ? [] : [{ dependency: 'provider', reason: provider.reason ?? provider.code }]),
    ...(disk.status === 'ok' || disk.status === 'unknown'
      ? []
      : [{ dependency: 'disk', reason: disk.status }]),
  ]
  metrics.set('sandwire_ready', reasons.length === 0 ? 1 : 0)
  for (const labels of reasons) metrics.count('sandwire_readiness_failures_total', labels)
}

/** Health checks and metrics. */
export function addHealthRoutes(app: App, guardOf: GuardOf, deps: HealthDependencies): void {
  const { config, provider, breaker, workspaceBreakers, metrics, sandboxdMetrics, nowMs, hasClaude } = deps
  const readHealth = cacheHealth(provider, nowMs)
  const checkReadiness = async (requestId: string): Promise<z.infer<typeof readiness>> => {
    const { disk, ...answered } = await readHealth(requestId)
    const hasSpace = disk === undefined || disk.status === 'ok'
    if (disk !== undefined) {
      metrics.set('sandwire_disk_free_bytes', disk.freeBytes)
      metrics.set('sandwire_disk_reserve_bytes', disk.reserveBytes)
    }
    const { worst, open } = workspaceBreakers.summary(nowMs())
    const dependencies = {
      provider: { ...answered, breaker: breaker.state.kind },
      disk: { status: disk?.status ?? ('unknown' as const) },
      workspaces: { breaker: worst, open },
    }
    recordReadiness(metrics, dependencies)
    const status = answered.status === 'ok' && hasSpace ? 'ok' : 'unavailable'
    return { status, version: SOFTWARE_VERSION, dependencies }
  }

  for (const path of ['/health', '/healthz'] as const)
    app.openapi(
      endpoint(guardOf, { method: 'get', path, responses: { 200: json(alive, 'The server is running') } }),
      (context) =>
        context.json(
          { status: 'ok' as const, version: SOFTWARE_VERSION, ...describeWorkspace(config, hasClaude()) },
          200,
        ),
    )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/readyz',
      responses: {
        200: json(readiness, 'Sandboxes can be created'),
        503: json(readiness, 'A dependency is unavailable'),
      },
    }),
    async (context) => {
      const answer = await checkReadiness(context.get('requestId'))
      return context.json(answer, answer.status === 'ok' ? 200 : 503)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/metrics',
      responses: { 200: { description: 'Metrics in the Prometheus text format' } },
    }),
    async (context) => {
      await Promise.all([measureUsage(deps), checkReadiness(context.get('requestId'))])
      const level = { closed: 0, 'half-open': 0.5, open: 1 }[breaker.state.kind]
      metrics.set('sandwire_breaker_open', level)
      sandboxdMetrics.collect()
      deps.versionMetrics.collect()
      const headers = { ...COMMON_HEADERS, 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }
      return new Response(metrics.render(), { headers })
    },
  )
}
