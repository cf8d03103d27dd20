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

/** A terminal is open and nothing moves. The share is a guess: sandboxd sleeps, and answers one question per look. */
export const IDLE_HOUR: Hour = { cpuShare: 0.005, egressGb: 0, requests: 2 }
/** Somebody works: builds, tests, an agent. */
export const ACTIVE_HOUR: Hour = { cpuShare: 0.25, egressGb: 0.02, requests: 30 }

/** Looks at a running sandbox in an hour: one per `alarmMs` of 30 s. */
export const LOOKS_PER_HOUR = 120
/** Rows that a look writes in the objects of sandbox and account; `apps/control/test/fleet-simulation.test.ts` counts them. */
export const ROWS_PER_LOOK = 4
/** How long the account's object is awake for a look or a request. Not measured on Cloudflare. */
const AWAKE_SECONDS = 0.2
/** Of the Worker, for a request. Not measured on Cloudflare. */
const WORKER_CPU_MS = 3
/** Of the two objects, for a sandbox that was used. */
export const STORED_GB = 100e-6

/** Dollars for an hour of one running sandbox, by what they are for. */
export function costOfHour({ memoryGib, diskGb, vcpu }: InstanceType, hour: Hour) {
  const container =
    3600 * (memoryGib * PRICES.memoryGibSecond + diskGb * PRICES.diskGbSecond) +
    3600 * vcpu * hour.cpuShare * PRICES.vcpuSecond +
    hour.egressGb * PRICES.egressGb
  // Each look and each request is one of the sandbox's object and one of the account's.
  const calls = LOOKS_PER_HOUR + hour.requests
  const control =
    2 * calls * PRICES.objectRequest +
    LOOKS_PER_HOUR * ROWS_PER_LOOK * PRICES.rowWritten +
    costOfWatching() +
    calls * AWAKE_SECONDS * OBJECT_GB * PRICES.objectGbSecond +
    hour.requests * (PRICES.workerRequest + WORKER_CPU_MS * PRICES.workerCpuMs)
  return { container, control, total: container + control }
}

/** Dollars for an hour in which a sandbox's object waits for the end of its container, which keeps it in memory. */
export function costOfWatching(): number {
  return 3600 * OBJECT_GB * PRICES.objectGbSecond
}

/** Running sandboxes that fit into one account, and what runs out first. */
export function capacityOf({ memoryGib, diskGb, vcpu }: InstanceType): { sandboxes: number; by: string } {
  const rooms = [
    { by: 'memory', sandboxes: Math.floor(ACCOUNT_LIMITS.memoryGib / memoryGib) },
    { by: 'vCPU', sandboxes: Math.floor(ACCOUNT_LIMITS.vcpu / vcpu) },
    { by: 'disk', sandboxes: Math.floor(ACCOUNT_LIMITS.diskGb / diskGb) },
  ]
  return rooms.reduce((least, room) => (room.sandboxes < least.sandboxes ? room : least))
}
