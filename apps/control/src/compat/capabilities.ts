import { z } from '@hono/zod-openapi'
import type { Config } from '../config.ts'

/** Version of the compat API that clients ask for. */
const API_VERSION = '0.1.0'
/**
 * Path of the workspace as processes in a sandbox see it. Also reported when a folder of this machine is served:
 * clients only display it, and the real parent path is private.
 */
export const WORKSPACE_ROOT = '/workspace'

export const workspaceMode = z.enum(['local', 'sandbox'])
export const workspaceFeatures = z
  .object({
    files: z.boolean(),
    git: z.boolean(),
    pty: z.boolean(),
    chat_claude_code: z.boolean(),
    stream: z.boolean().openapi({ description: 'The same as chat_claude_code.' }),
    approval: z.boolean(),
    sandbox: z.boolean(),
  })
  .openapi('Features')

type Mode = z.infer<typeof workspaceMode>

export function modeOf({ workspaceMode: mode }: Pick<Config, 'workspaceMode'>): Mode {
  return mode === 'local' ? 'local' : 'sandbox'
}

/** True where Claude Code runs with the login of the sandbox's own machine, so that the server needs no key. */
export function hasOwnClaude({ provider }: Pick<Config, 'provider'>): boolean {
  return provider === 'sprites'
}

function featuresOf(mode: Mode, hasClaude: boolean): z.infer<typeof workspaceFeatures> {
  return {
    files: true,
    git: true,
    pty: true,
    chat_claude_code: hasClaude,
    stream: hasClaude,
    approval: false,
    sandbox: mode === 'sandbox',
  }
}

/** The workspace fields of `/health`. */
export function describeWorkspace(config: Pick<Config, 'workspaceMode'>, hasClaude: boolean) {
  const mode = modeOf(config)
  return { workspace: WORKSPACE_ROOT, workspace_mode: mode, features: featuresOf(mode, hasClaude) }
}

const router = z.object({
  name: z.string(),
  prefix: z.string(),
  description: z.string(),
  tags: z.array(z.string()),
  enabled: z.boolean(),
})
export const capabilities = z
  .object({ version: z.string(), features: workspaceFeatures, routers: z.array(router) })
  .openapi('Capabilities')

const ROUTERS = [
  { name: 'files', prefix: '/api', description: 'Workspace files: list, read, write, search' },
  { name: 'git', prefix: '/api/git', description: 'Git status, diff and history of the workspace' },
  { name: 'pty', prefix: '/ws', description: 'Terminals over WebSocket' },
  { name: 'chat_claude_code', prefix: '/ws', description: 'Sessions of Claude Code over WebSocket' },
  { name: 'approval', prefix: '/api/approval', description: 'Approval requests of an agent' },
] as const

/** Body of `/api/capabilities`. */
export function describeCapabilities(
  config: Pick<Config, 'workspaceMode'>,
  hasClaude: boolean,
): z.infer<typeof capabilities> {
  const features = featuresOf(modeOf(config), hasClaude)
  const routers = ROUTERS.map((one) => ({ ...one, tags: [one.name], enabled: features[one.name] }))
  return { version: API_VERSION, features, routers }
}
