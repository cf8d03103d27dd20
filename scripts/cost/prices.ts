// What Cloudflare asks for, in US dollars beyond what the Workers Paid plan includes, and what it allows one account. From
// Cloudflare's documentation, as it was on 2026-11-15:
// containers: developers.cloudflare.com/containers/platform/pricing and /containers/platform/limits
// objects: developers.cloudflare.com/durable-objects/platform/pricing
// Workers: developers.cloudflare.com/workers/platform/pricing

export const PRICES = {
  /** Of the instance, whether used or not. */
  memoryGibSecond: 0.0000025,
  /** Used, not provisioned. */
  vcpuSecond: 0.00002,
  /** Of the instance, whether used or not. */
  diskGbSecond: 0.00000007,
  /** North America and Europe; elsewhere up to twice that. */
  egressGb: 0.025,
  /** HTTP requests, calls between objects, and alarms alike. */
  objectRequest: 0.15 / 1e6,
  /** Rows of an object that are written, and alarms that are set. */
  rowWritten: 1 / 1e6,
  /** Of an object that is awake, at 128 MB whatever it uses. */
  objectGbSecond: 12.5 / 1e6,
  storedGbMonth: 0.2,
  workerRequest: 0.3 / 1e6,
  workerCpuMs: 0.02 / 1e6,
} as const

/** What every account pays for the plan, each month. */
export const PLAN_PER_MONTH = 5

/** Memory that an object is billed for. */
export const OBJECT_GB = 0.128

export interface InstanceType {
  readonly name: string
  readonly vcpu: number
  readonly memoryGib: number
  readonly diskGb: number
}

export const INSTANCE_TYPES: readonly InstanceType[] = [
  { name: 'lite', vcpu: 1 / 16, memoryGib: 0.25, diskGb: 2 },
  { name: 'basic', vcpu: 1 / 4, memoryGib: 1, diskGb: 4 },
  { name: 'standard-1', vcpu: 1 / 2, memoryGib: 4, diskGb: 8 },
  { name: 'standard-2', vcpu: 1, memoryGib: 6, diskGb: 12 },
]

/** What the containers of one account may have at once, unless Cloudflare agrees to more. */
export const ACCOUNT_LIMITS = { memoryGib: 6 * 1024, vcpu: 1_500, diskGb: 30_000 } as const
