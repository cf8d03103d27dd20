/** What a run costs, of one sandbox or of all. */
export interface Tally {
  /** Alarms and requests that the sandbox's object is woken or kept awake for. */
  wakeUps: number
  /** Attaches and joins among them. */
  requests: number
  /** Rows that the sandbox's object writes, its alarm included. */
  sandboxRows: number
  /** Reports to the account's object, each of which wakes it. */
  reports: number
  /** Rows that these write there. */
  accountRows: number
  starts: number
  /** Stops because nothing moved. */
  idleStops: number
  /** Joins that were refused because the sandbox does not run. */
  refusedJoins: number
  /** Time that it ran. */
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

/** A sandbox that is driven through a run. Times never go back. */
export interface FleetSandbox {
  readonly tally: Tally
  /** When its alarm rings; undefined: never. */
  readonly alarmMs: number | undefined
  readonly isRunning: boolean
  /** Somebody attaches to start a shell. */
  attach(nowMs: number): void | Promise<void>
  /** A connection that was cut comes back to its session. */
  join(nowMs: number): void | Promise<void>
  /** The alarm rings. `movedMs` is what its sandboxd says of the last movement. */
  ring(nowMs: number, movedMs: number): void | Promise<void>
}

/** Adds one to another. */
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
