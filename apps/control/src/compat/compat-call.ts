import { z } from 'zod'
import { claudeSelectionSchema, ptySelectionSchema } from './compat-sessions.ts'

/** A client that speaks neither dialect of our own. sandboxd translates for it, or a provider that runs the session itself. */
export const compatCallSchema = z.discriminatedUnion('kind', [
  ptySelectionSchema,
  claudeSelectionSchema,
  /** `/terminal/:session` without a subprotocol: terminal text both ways. */
  z.object({
    kind: z.literal('text'),
    /** Interval of pings to the client; absent: sandboxd's default. */
    heartbeatSeconds: z.int().exactOptional(),
  }),
])
export type CompatCall = z.infer<typeof compatCallSchema>
