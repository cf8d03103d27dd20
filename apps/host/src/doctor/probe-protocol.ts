import { schema } from '@sandwire/protocol'

/** Things outside the sandbox that the prober tries to find, and must not. */
export const probeTargetsSchema = schema.record({
  /** Part of the command line of a process outside, reversed: the prober's own command line contains this value. */
  processMarkerBackwards: schema.text(64),
  /** Name of a listening abstract socket outside. */
  abstractSocket: schema.text(64),
  /** Listening addresses outside, as `HOST:PORT`. */
  addresses: schema.list(schema.text(64), 16),
  /** Readable files outside. */
  files: schema.list(schema.text(400), 16),
  /** Files and devices of this machine, also in the sandbox, that a process outside opens all the time. */
  used: schema.list(schema.text(200), 16),
  /** One of them, on which a process outside has a lock. */
  locked: schema.text(200),
  /** The data folder. */
  folder: schema.text(400),
  /** Name of a variable in the environment outside. */
  variable: schema.text(64),
  /** Socket of the program that runs the sandbox, as seen inside. */
  daemonSocket: schema.text(200),
})
export type ProbeTargets = schema.Decoded<typeof probeTargetsSchema>

/** Result of one attempt to break out, or to exceed a limit. */
export const probeReportSchema = schema.record({
  /** Such as `mount` or `host-network`. */
  name: schema.text(64),
  /** `ok`: blocked as designed. `weak`: blocked otherwise, or in part. `failed`: succeeded. */
  verdict: schema.oneOf(['ok', 'weak', 'failed']),
  /** Description for the report. */
  line: schema.text(300),
})
export type ProbeReport = schema.Decoded<typeof probeReportSchema>
export type Verdict = ProbeReport['verdict']

export function report(name: string, verdict: Verdict, line: string): ProbeReport {
  return { name, verdict, line }
}

/** Parses one output line of a prober; undefined for other output. */
export function parseReport(line: string): ProbeReport | undefined {
  try {
    return probeReportSchema.decode(JSON.parse(line))
  } catch {
    // Not JSON.
    return undefined
  }
}
