import { z } from 'zod'
import { CALL_HEADER, type SandboxCall } from '../sandbox/call.ts'
import { callFields } from '../sandbox/pass-through.ts'

/** URL at which a run's object streams its events, diff or terminal. */
export const RUN_URL = 'http://run/stream'

/** A request for a stream, on its way from the Worker to the run's object. */
export interface RunStreamCall extends SandboxCall {
  readonly what: 'events' | 'diff' | 'terminal' | 'claude'
  /** How events are sent. */
  readonly form: 'socket' | 'sse' | 'json'
  /** Sequence number of the last event that the client has. */
  readonly after: number
  readonly limit: number
  /** For `claude`: the session's name for the client, whether it continues a conversation, and whether its program must be at work. */
  readonly session?: { readonly name: string; readonly isResumed: boolean; readonly isJoin: boolean }
}

const callSchema = z.object({
  ...callFields,
  what: z.enum(['events', 'diff', 'terminal', 'claude']),
  form: z.enum(['socket', 'sse', 'json']),
  after: z.number(),
  limit: z.number(),
  session: z.object({ name: z.string(), isResumed: z.boolean(), isJoin: z.boolean() }).exactOptional(),
})

export function parseRunCall(headers: Headers): RunStreamCall {
  return callSchema.parse(JSON.parse(headers.get(CALL_HEADER) ?? ''))
}
