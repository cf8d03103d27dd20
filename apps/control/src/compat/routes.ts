import { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import type { CommandPolicy } from '../commands/command-policy.ts'
import type { Config } from '../config.ts'
import type { GatewayGrants } from '../credentials/grants.ts'
import { type Outcome, unwrap } from '../outcome.ts'
import { type App, callOf } from '../routes/context.ts'
import { endpoint, type GuardOf, json } from '../routes/endpoint.ts'
import { detailBody } from '../routes/schemas.ts'
import { CLAUDE, providerOf } from '../run/agents.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import type { SessionFacts } from '../sandbox/session-view.ts'
import {
  capabilities,
  describeCapabilities,
  hasOwnClaude,
  modeOf,
  workspaceMode,
  WORKSPACE_ROOT,
} from './capabilities.ts'
import { listProviders } from './pty-providers.ts'

export interface CompatDependencies {
  readonly lookup: SandboxLookup
  readonly config: Pick<Config, 'workspaceMode' | 'defaultName' | 'runs' | 'provider'>
  readonly grants: Pick<GatewayGrants, 'check'>
  readonly commands: CommandPolicy
  readonly mintId: () => string
}

const sessionEntry = z.object({
  id: z.string(),
  type: z.enum(['pty', 'stream']),
  alive: z.boolean(),
  clients: z.int(),
  history_count: z.int().openapi({ description: 'Bytes of output that are still available.' }),
})
const sessionEntries = z.object({ sessions: z.array(sessionEntry) }).openapi('CompatSessions')
const sessionsQuery = z.strictObject({
  sandbox: z.string().optional().openapi({ description: 'Id or name; default: the default sandbox.' }),
})
const settingsQuery = z.strictObject({
  config_path: z
    .string()
    .max(4_096)
    .optional()
    .openapi({ description: "Path of the client's own configuration; ignored." }),
})
const settings = z
  .object({
    workspace_root: z.string(),
    workspace_mode: workspaceMode,
    pty_providers: z.array(z.string()),
    paths: z.object({ files: z.string() }),
  })
  .openapi('CompatConfig')
const errorResponse = { default: json(detailBody, 'Error; its code is in x-sandwire-code') }

function toEntry({ id, mode, state, attachments, output }: SessionFacts): z.infer<typeof sessionEntry> {
  return {
    id,
    type: mode === 'pty' ? 'pty' : 'stream',
    alive: state === 'pending' || state === 'running',
    clients: attachments,
    history_count: Math.max(0, output.end - output.start),
  }
}

/** A stopped sandbox has no sessions. */
function unwrapSessions(outcome: Outcome<readonly SessionFacts[]>): readonly SessionFacts[] {
  return !outcome.ok && outcome.code === 'sandbox_stopped' ? [] : unwrap(outcome)
}

/** Compat routes other than files and terminals: sessions, capabilities, configuration, project. */
export function addCompatRoutes(
  app: App,
  guardOf: GuardOf,
  { lookup, config, commands, grants, mintId }: CompatDependencies,
): void {
  const listSessions = async (
    call: SandboxCall,
    sandbox: string | undefined,
  ): Promise<readonly SessionFacts[]> => {
    try {
      const ref = parseSandboxRef(sandbox ?? config.defaultName)
      const id = await lookup.resolve(call.identity, ref)
      return unwrapSessions(await lookup.sandbox(id).refreshSessions(call))
    } catch (error) {
      // The default sandbox is created by the first attach.
      const isMissing = error instanceof SandwireError && error.code === 'sandbox_not_found'
      if (isMissing && sandbox === undefined) return []
      throw error
    }
  }

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/sessions',
      request: { query: sessionsQuery },
      responses: {
        200: json(sessionEntries, 'The sessions of a sandbox, terminals first'),
        ...errorResponse,
      },
    }),
    async (context) => {
      const facts = await listSessions(callOf(context), context.req.valid('query').sandbox)
      const all = facts.filter(({ state }) => state !== 'gone').map(toEntry)
      const sessions = (['pty', 'stream'] as const).flatMap((type) => all.filter((one) => one.type === type))
      return context.json({ sessions }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sessions',
      responses: {
        200: json(z.object({ session_id: z.uuid() }), 'A new session id; nothing is started'),
        ...errorResponse,
      },
    }),
    (context) => context.json({ session_id: mintId() }, 200),
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/capabilities',
      responses: { 200: json(capabilities, 'Features of this server'), ...errorResponse },
    }),
    async (context) => {
      const hasKey = await grants.check({ provider: providerOf(config.runs, CLAUDE) }).then(
        () => true,
        () => false,
      )
      return context.json(describeCapabilities(config, hasKey || hasOwnClaude(config)), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/config',
      request: { query: settingsQuery },
      responses: { 200: json(settings, 'Configuration of the workspace'), ...errorResponse },
    }),
    (context) =>
      context.json(
        {
          workspace_root: WORKSPACE_ROOT,
          workspace_mode: modeOf(config),
          pty_providers: [...listProviders(commands)],
          paths: { files: '.' },
        },
        200,
      ),
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/project',
      responses: { 200: json(z.object({ root: z.string() }), 'Path of the workspace'), ...errorResponse },
    }),
    (context) => context.json({ root: WORKSPACE_ROOT }, 200),
  )
}
