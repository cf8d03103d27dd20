import { schema } from '@sandwire/protocol'

const version = schema.text(64)

const statusSchemas = {
  installed: schema.record({ state: schema.literal('installed'), version }),
  installing: schema.record({
    state: schema.literal('installing'),
    version,
    receivedBytes: schema.nonNegativeInteger,
    /** 0 while it is not known. */
    totalBytes: schema.nonNegativeInteger,
  }),
  failed: schema.record({ state: schema.literal('failed'), problem: schema.text(4096) }),
}

/** The host's answer to `PUT /agents/NAME`: whether the program of an agent is installed. */
export type AgentProgramStatus =
  | schema.Decoded<typeof statusSchemas.installed>
  | schema.Decoded<typeof statusSchemas.installing>
  | schema.Decoded<typeof statusSchemas.failed>

export function decodeAgentProgramStatus(value: unknown): AgentProgramStatus | undefined {
  return (
    statusSchemas.installed.decode(value) ??
    statusSchemas.installing.decode(value) ??
    statusSchemas.failed.decode(value)
  )
}
