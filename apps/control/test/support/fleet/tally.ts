/** What a run costs, of one sandbox or of all. */
export interface Tally {
  /** Alarms and requests of the sandbox object. */
  wakeUps: number
  /** Attaches and joins of these. */
  requests: number
  /** Rows written by the sandbox object, including its alarm. */
  sandboxRows: number
  /** Reports to the account object, each of which wakes it. */
  reports: number
  /** Rows written by these reports. */
  accountRows: number
  starts: number
  /** Stops of idle sandboxes. */
  idleStops: number
  /** Joins that were refused because the sandbox does not run. */
  refusedJoins: number
  /** Running time. */
  runningMs: number
}

export function emptyTally(): Tally {
  return {
    wakeUps: 0,
    requests: 0,
    sandboxRows: 0,
    reports: 0,
    accountRows: 0,
    starts: 0,
    idleStops: 0,
    refusedJoins: 0,
    runningMs: 0,
  }
}

/** A sandbox in a simulation. Times never decrease. */
export interface FleetSandbox {
  readonly tally: Tally
  /** Time of its alarm; undefined: none. */
  readonly alarmMs: number | undefined
  readonly isRunning: boolean
  /** An attach that starts a shell. */
  attach(nowMs: number): void | Promise<void>
  /** A disconnected client rejoins its session. */
  join(nowMs: number): void | Promise<void>
  /** The alarm fires. `movedMs` is the last activity reported by sandboxd. */
  fire(nowMs: number, movedMs: number): void | Promise<void>
}

/** Adds one tally to another. */
export function addTally(to: Tally, from: Readonly<Tally>): void {
  to.wakeUps += from.wakeUps
  to.requests += from.requests
  to.sandboxRows += from.sandboxRows
  to.reports += from.reports
  to.accountRows += from.accountRows
  to.starts += from.starts
  to.idleStops += from.idleStops
  to.refusedJoins += from.refusedJoins
  to.runningMs += from.runningMs
}
