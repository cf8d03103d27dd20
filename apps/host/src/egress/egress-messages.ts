import { networkShape } from '@sandwire/internal-api'
import { shape } from '@sandwire/protocol'

/** Rate of log lines about blocked targets, so that a sandbox cannot fill the log. */
export const LOG_PER_SECOND = 1
export const LOG_BURST = 20

/** What the process of an egress proxy does. */
const taskShape = shape.record({
  /** Where to listen, as the process sees it. */
  socketPath: shape.text(200, /^\//),
  network: networkShape,
})
export type EgressTask = shape.Decoded<typeof taskShape>

/** Throws for an invalid task. */
export function parseEgressTask(line: string): EgressTask {
  const task = taskShape.decode(JSON.parse(line))
  if (task === undefined) throw new Error('Cannot open the egress proxy: the task is not valid')
  return task
}

const messageShape = shape.tagged({
  ready: shape.record({ type: shape.literal('ready') }),
  blocked: shape.record({
    type: shape.literal('blocked'),
    host: shape.text(300),
    port: shape.integer(0, 65_535),
    reason: shape.oneOf(['network_off', 'not_listed', 'port_not_listed', 'port_refused', 'address_refused']),
  }),
})

/** What the process reports. It parses a sandbox's bytes, so its reports are not trusted. */
export type EgressMessage = shape.Decoded<typeof messageShape>

export function formatEgressMessage(message: EgressMessage): string {
  return `${JSON.stringify(message)}\n`
}

/** Undefined for anything else. */
export function parseEgressMessage(line: string): EgressMessage | undefined {
  try {
    return messageShape.decode(JSON.parse(line))
  } catch {
    // Not JSON.
    return undefined
  }
}
