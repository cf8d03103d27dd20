import type { NumberedEvent, Partial } from '@sandwire/agent'
import { z } from 'zod'
import { numberedEventSchema } from '../run/agent-responses.ts'

/** Largest message of sandboxd. */
const MAX_MESSAGE_CHARS = 8 * 1024 * 1024

const partialSchema = z.object({
  partial: z.object({
    kind: z.enum(['text', 'thinking', 'input']),
    messageId: z.string(),
    text: z.string(),
    subagent: z.string().exactOptional(),
  }),
}) satisfies z.ZodType<Partial>

export type AgentMessage = { readonly event: NumberedEvent } | Partial

/** Decodes a message of sandboxd; undefined when it is neither an event nor a part of one. */
export function decodeAgentMessage(text: string): AgentMessage | undefined {
  if (text.length > MAX_MESSAGE_CHARS) return undefined
  try {
    const value: unknown = JSON.parse(text)
    const event = numberedEventSchema.safeParse(value)
    if (event.success) return { event: event.data }
    const partial = partialSchema.safeParse(value)
    return partial.success ? partial.data : undefined
  } catch {
    // Not JSON.
    return undefined
  }
}

/** Puts events that follow each other together. */
export function* groupEvents(
  messages: readonly AgentMessage[],
): Generator<{ readonly events: readonly NumberedEvent[] } | Partial> {
  let events: NumberedEvent[] = []
  for (const message of messages) {
    if ('event' in message) {
      events.push(message.event)
      continue
    }
    if (events.length > 0) yield { events }
    events = []
    yield message
  }
  if (events.length > 0) yield { events }
}
