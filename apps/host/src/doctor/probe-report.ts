import { shape } from '@sandwire/protocol'

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
