import { networkSchema } from '@sandwire/internal-api'
import { schema } from '@sandwire/protocol'

/** Rate of log lines about blocked targets, so that a sandbox cannot fill the log. */
export const LOG_PER_SECOND = 1
export const LOG_BURST = 20

/** What the process of an egress proxy does. */
const taskSchema = schema.record({
  /** Where to listen, as the process sees it. */
  socketPath: schema.text(200, /^\//),
  network: networkSchema,
})
export type EgressTask = schema.Decoded<typeof taskSchema>

/** Throws for an invalid task. */
export function parseEgressTask(line: string): EgressTask {
  const task = taskSchema.decode(JSON.parse(line))
  if (task === undefined) throw new Error('Cannot open the egress proxy: the task is not valid')
  return task
}

const messageSchema = schema.tagged({
  ready: schema.record({ type: schema.literal('ready') }),
  blocked: schema.record({
    type: schema.literal('blocked'),
    host: schema.text(300),
    port: schema.integer(0, 65_535),
    reason: schema.oneOf(['network_off', 'not_listed', 'port_not_listed', 'port_refused', 'address_refused']),
  }),
})

/** What the process reports. It parses a sandbox's bytes, so its reports are not trusted. */
export type EgressMessage = schema.Decoded<typeof messageSchema>

export function formatEgressMessage(message: EgressMessage): string {
  return `${JSON.stringify(message)}\n`
}

/** Undefined for anything else. */
export function parseEgressMessage(line: string): EgressMessage | undefined {
  try {
    return messageSchema.decode(JSON.parse(line))
  } catch {
    // Not JSON.
    return undefined
  }
}
