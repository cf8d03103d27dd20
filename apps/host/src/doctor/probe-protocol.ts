import { shape } from '@sandwire/protocol'

/** What the outside tells the prober to look for: all of it is there, on this machine, and must not be found. */
export const probeTargetsShape = shape.record({
  /** Part of the command line of a process outside, spelled backwards: the prober's own has it too, as this clue. */
  processMarkerBackwards: shape.text(64),
  /** Name of an abstract socket outside that answers. */
  abstractSocket: shape.text(64),
  /** Addresses outside that answer, as `HOST:PORT`. */
  addresses: shape.list(shape.text(64), 16),
  /** Files outside that can be read there. */
  files: shape.list(shape.text(400), 16),
  /** Name of a variable in the environment outside. */
  variable: shape.text(64),
  /** Socket of the program that runs the sandbox, as seen inside. */
  daemonSocket: shape.text(200),
})
export type ProbeTargets = shape.Decoded<typeof probeTargetsShape>

/** What became of one attempt to get out, or to take more than is given. */
export const probeReportShape = shape.record({
  /** Such as `mount` or `host-network`. */
  name: shape.text(64),
  /** `ok`: held where it is meant to. `weak`: held by something else, or only in part. `failed`: got through. */
  verdict: shape.oneOf(['ok', 'weak', 'failed']),
  /** One line for people. */
  line: shape.text(300),
})
export type ProbeReport = shape.Decoded<typeof probeReportShape>
export type Verdict = ProbeReport['verdict']

export function report(name: string, verdict: Verdict, line: string): ProbeReport {
  return { name, verdict, line }
}

/** Reads one line of a prober; undefined for anything else it may say. */
export function parseReport(line: string): ProbeReport | undefined {
  try {
    return probeReportShape.decode(JSON.parse(line))
  } catch {
    // Not JSON.
    return undefined
  }
}
