import { ACCOUNT_LIMITS, type InstanceType, OBJECT_GB, PRICES } from './prices.ts'

/** What an hour of one running sandbox is like. */
export interface Hour {
  /** Processor time of everything in the sandbox, as a part of what its instance has. */
  readonly cpuShare: number
  /** Output to clients. */
  readonly egressGb: number
  /** Requests and attaches of people and programs. */
  readonly requests: number
}

/** A terminal is open and nothing moves. The share is a guess: sandboxd sleeps, and answers one request per poll. */
export const IDLE_HOUR: Hour = { cpuShare: 0.005, egressGb: 0, requests: 2 }
/** Builds, tests, an agent. */
export const ACTIVE_HOUR: Hour = { cpuShare: 0.25, egressGb: 0.02, requests: 30 }

/** Polls of a running sandbox in an hour: one per `alarmMs` of 30 s. */
export const POLLS_PER_HOUR = 120
/** Rows that a poll writes in the objects of sandbox and account; `apps/control/test/fleet-simulation.test.ts` counts them. */
export const ROWS_PER_POLL = 4
/** How long the account's object is active for a poll or a request. Not measured on Cloudflare. */
const AWAKE_SECONDS = 0.2
/** Processor time of the Worker for a request. Not measured on Cloudflare. */
const WORKER_CPU_MS = 3
/** Storage of the two objects for a sandbox that was used. */
export const STORED_GB = 100e-6

/** Dollars for an hour of one running sandbox, by purpose. */
export function costOfHour({ memoryGib, diskGb, vcpu }: InstanceType, hour: Hour) {
  const container =
    3600 * (memoryGib * PRICES.memoryGibSecond + diskGb * PRICES.diskGbSecond) +
    3600 * vcpu * hour.cpuShare * PRICES.vcpuSecond +
    hour.egressGb * PRICES.egressGb
  // Each poll and each request is one request to the sandbox's object and one to the account's.
  const calls = POLLS_PER_HOUR + hour.requests
  const control =
    2 * calls * PRICES.objectRequest +
    POLLS_PER_HOUR * ROWS_PER_POLL * PRICES.rowWritten +
    costOfMonitoring() +
    calls * AWAKE_SECONDS * OBJECT_GB * PRICES.objectGbSecond +
    hour.requests * (PRICES.workerRequest + WORKER_CPU_MS * PRICES.workerCpuMs)
  return { container, control, total: container + control }
}

/** Dollars for an hour in which a sandbox's object waits for the end of its container, which keeps it in memory. */
export function costOfMonitoring(): number {
  return 3600 * OBJECT_GB * PRICES.objectGbSecond
}

/** Running sandboxes that fit into one account, and the limit that is reached first. */
export function capacityOf({ memoryGib, diskGb, vcpu }: InstanceType): { sandboxes: number; by: string } {
  const capacities = [
    { by: 'memory', sandboxes: Math.floor(ACCOUNT_LIMITS.memoryGib / memoryGib) },
    { by: 'vCPU', sandboxes: Math.floor(ACCOUNT_LIMITS.vcpu / vcpu) },
    { by: 'disk', sandboxes: Math.floor(ACCOUNT_LIMITS.diskGb / diskGb) },
  ]
  return capacities.reduce((least, each) => (each.sandboxes < least.sandboxes ? each : least))
}
