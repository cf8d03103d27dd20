import { z } from '@hono/zod-openapi'
import type { Config } from '../config.ts'

/** Version of the contract that existing front ends ask for. */
const CONTRACT_VERSION = '0.1.0'
/**
 * Where files are, as processes in a sandbox see it. Also said where a folder of this machine is served: what is above that
 * folder is nobody's business, and front ends only show it.
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

function featuresOf(mode: Mode): z.infer<typeof workspaceFeatures> {
  return {
    files: true,
    git: true,
    pty: true,
    chat_claude_code: false,
    stream: false,
    approval: false,
    sandbox: mode === 'sandbox',
  }
}

/** What is said of the workspace wherever somebody asks how this server is. */
export function describeWorkspace(config: Pick<Config, 'workspaceMode'>) {
  const mode = modeOf(config)
  return { workspace: WORKSPACE_ROOT, workspace_mode: mode, features: featuresOf(mode) }
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
  { name: 'files', prefix: '/api', description: 'Files of the workspace: list, read, write, search' },
  { name: 'git', prefix: '/api/git', description: 'What git knows of the workspace' },
  { name: 'pty', prefix: '/ws', description: 'Terminals over WebSocket' },
  { name: 'chat_claude_code', prefix: '/ws', description: 'Conversations with an agent over WebSocket' },
  { name: 'approval', prefix: '/api/approval', description: 'Questions of an agent to a person' },
] as const

/** What this server can do, as existing front ends read it. */
export function describeCapabilities(config: Pick<Config, 'workspaceMode'>): z.infer<typeof capabilities> {
  const features = featuresOf(modeOf(config))
  const routers = ROUTERS.map((one) => ({ ...one, tags: [one.name], enabled: features[one.name] }))
  return { version: CONTRACT_VERSION, features, routers }
}
