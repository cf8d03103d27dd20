import { shape } from '@sandwire/protocol'

const version = shape.text(64)

const statusShapes = {
  installed: shape.record({ state: shape.literal('installed'), version }),
  installing: shape.record({
    state: shape.literal('installing'),
    version,
    receivedBytes: shape.nonNegativeInteger,
    /** 0 while it is not known. */
    totalBytes: shape.nonNegativeInteger,
  }),
  failed: shape.record({ state: shape.literal('failed'), problem: shape.text(4096) }),
}

/** The host's answer to `PUT /agents/NAME`: whether the program of an agent is installed. */
export type AgentProgramStatus =
  | shape.Decoded<typeof statusShapes.installed>
  | shape.Decoded<typeof statusShapes.installing>
  | shape.Decoded<typeof statusShapes.failed>

export function decodeAgentProgramStatus(value: unknown): AgentProgramStatus | undefined {
  return (
    statusShapes.installed.decode(value) ??
    statusShapes.installing.decode(value) ??
    statusShapes.failed.decode(value)
  )
}
