// Cloudflare's prices in US dollars, beyond what the Workers Paid plan includes, and its account limits. From
// Cloudflare's documentation of 2026-11-15:
// containers: developers.cloudflare.com/containers/platform/pricing and /containers/platform/limits
// objects: developers.cloudflare.com/durable-objects/platform/pricing
// Workers: developers.cloudflare.com/workers/platform/pricing

export const PRICES = {
  /** Provisioned by the instance type, used or not. */
  memoryGibSecond: 0.0000025,
  /** Used, not provisioned. */
  vcpuSecond: 0.00002,
  /** Provisioned by the instance type, used or not. */
  diskGbSecond: 0.00000007,
  /** North America and Europe; elsewhere up to twice that. */
  egressGb: 0.025,
  /** HTTP requests, calls between objects, and alarms alike. */
  objectRequest: 0.15 / 1e6,
  /** Rows written by an object, and alarms set. */
  rowWritten: 1 / 1e6,
  /** Of an active object, at 128 MB whatever it uses. */
  objectGbSecond: 12.5 / 1e6,
  storedGbMonth: 0.2,
  workerRequest: 0.3 / 1e6,
  workerCpuMs: 0.02 / 1e6,
} as const

/** Monthly price of the plan per account. */
export const PLAN_PER_MONTH = 5

/** Billed memory of an object. */
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

/** Limits of all concurrent containers of one account; Cloudflare raises them on request. */
export const ACCOUNT_LIMITS = { memoryGib: 6 * 1024, vcpu: 1_500, diskGb: 30_000 } as const
