import { z } from 'zod'
import { ptySelectionSchema } from './pty-sessions.ts'

/** What sandboxd translates for a client that speaks neither dialect of our own. */
export const compatCallSchema = z.discriminatedUnion('kind', [
  ptySelectionSchema,
  /** `/terminal/:session` without a subprotocol: terminal text both ways. */
  z.object({
    kind: z.literal('text'),
    /** Interval of pings to the client; absent: sandboxd's default. */
    heartbeatSeconds: z.int().exactOptional(),
  }),
])
export type CompatCall = z.infer<typeof compatCallSchema>
