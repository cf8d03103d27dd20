import { z } from '@hono/zod-openapi'
import { NETWORK_POLICIES } from '@sandwire/operator-settings'
import type { Ceilings } from '../ceilings/ceilings.ts'
import type { Config } from '../config.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { type App, identityOf } from './context.ts'
import { endpoint, type GuardOf, json } from './endpoint.ts'

const use = z.object({
  used: z.number(),
  limit: z
    .number()
    .nullable()
    .openapi({ description: 'The most that the account can have; null: no ceiling.' }),
})
const running = { description: 'Of the running sandboxes.' }
const perSandbox = {
  memoryBytes: z.number().optional(),
  milliCpus: z.number().optional(),
  pids: z.number().optional(),
  diskBytes: z.number().optional(),
}
const usageView = z
  .object({
    account: z.object({
      sandboxes: use,
      running: use,
      sessions: use,
      memoryBytes: use.optional().openapi(running),
      milliCpus: use.optional().openapi(running),
      pids: use.optional().openapi(running),
      diskBytes: use.optional().openapi({ description: 'Of all sandboxes.' }),
      storedBytes: use
        .optional()
        .openapi({ description: 'Of saved versions, ended runs and conversations.' }),
    }),
    sandbox: z
      .object({
        ...perSandbox,
        sessions: z.number(),
        networks: z.array(z.enum(NETWORK_POLICIES)).readonly(),
        idleSeconds: z.number().nullable().openapi({ description: 'Null: a sandbox may stay idle forever.' }),
      })
      .openapi({ description: 'The most that one sandbox can have.' }),
    defaults: z
      .object({ ...perSandbox, network: z.enum(NETWORK_POLICIES), idleSeconds: z.number() })
      .openapi({ description: 'What a sandbox gets that asks for nothing.' }),
  })
  .openapi('Usage', { description: 'Without limits where the provider does not set those of sandboxes.' })

interface UsageDependencies {
  readonly lookup: SandboxLookup
  readonly ceilings: Ceilings
  readonly config: Pick<Config, 'provider' | 'limits'>
}

const NOTHING = { used: 0, limit: null }

/** The ceilings of one sandbox and the defaults. */
function describeSandbox({ ceilings, config }: UsageDependencies) {
  const { networks, idleSeconds, ...highest } = ceilings.sandbox
  const { limits, network, idleSeconds: defaultIdle } = ceilings.defaults
  const hasLimits = config.provider === 'host'
  const sessions = config.limits.sessionsPerSandbox
  return {
    sandbox: { ...(hasLimits ? highest : {}), sessions, networks, idleSeconds },
    defaults: { ...(hasLimits ? limits : {}), network, idleSeconds: defaultIdle },
  }
}

/** `/api/account/usage`. */
export function addUsageRoutes(app: App, guardOf: GuardOf, deps: UsageDependencies): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/account/usage',
      responses: { 200: json(usageView, 'What the account uses, and the ceilings for it') },
    }),
    async (context) => {
      const uses = unwrap(await deps.lookup.account(identityOf(context).account).usage())
      const { sandboxes = NOTHING, running = NOTHING, sessions = NOTHING, ...rest } = uses
      const account = { sandboxes, running, sessions, ...rest }
      return context.json({ account, ...describeSandbox(deps) }, 200)
    },
  )
}
