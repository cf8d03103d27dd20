import { z } from 'zod'

/** Longest time between two looks at a running sandbox. */
const MAX_ALARM_MS = 60_000

const configSchema = z.object({
  mode: z.literal('local'),
  /** Origins of web pages that may talk to this server, as `URL.origin` spells them. */
  publicOrigins: z.array(z.string().refine(isOrigin)).max(64),
  /** Host headers that mean this server, with their port. */
  hosts: z.array(z.string().min(1)).min(1).max(64),
  localTokenSha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Idle time after which a sandbox stops unless it says otherwise. */
  sleepAfterMs: z.int().min(1_000),
  alarmMs: z.int().min(50).max(MAX_ALARM_MS),
  maxSandboxes: z.int().min(1),
  provider: z.literal('host'),
  /** `local` serves one existing folder as the only sandbox. */
  workspaceMode: z.enum(['sandboxes', 'local']),
})

/** Settings of control, decoded once per isolate. */
export type Config = z.infer<typeof configSchema> & {
  /** Name of the sandbox of an attach that names none. */
  readonly defaultName: string
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}

/** Reads the settings; throws when they are not what this version knows, since a guess could open a door. */
export function decodeConfig(text: string): Config {
  const config = configSchema.parse(JSON.parse(text))
  return config.workspaceMode === 'local'
    ? { ...config, maxSandboxes: 1, defaultName: 'local' }
    : { ...config, defaultName: 'default' }
}
