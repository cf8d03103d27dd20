import { schema } from '@sandwire/protocol'
import { anything, type Field, validateRecord } from '../validate-record.ts'

export const NETWORK_POLICIES = ['none', 'allowlist', 'open'] as const
export type NetworkPolicy = (typeof NETWORK_POLICIES)[number]

/** What an account or the machine has a limited amount of. The first four belong to running sandboxes. */
export const RESOURCES = [
  'running',
  'memoryBytes',
  'milliCpus',
  'pids',
  'sandboxes',
  'diskBytes',
  'storedBytes',
  'sessions',
] as const
export type Resource = (typeof RESOURCES)[number]

/** An amount of each resource; absent: none. */
export type Amounts = Readonly<Partial<Record<Resource, number>>>
/** The highest amount of each resource; absent or null: no ceiling. */
export type Maximums = Readonly<Partial<Record<Resource, number | null>>>

/** The operator's ceilings. What is absent is derived from the machine. */
export interface CeilingSettings {
  /** What one sandbox may request. */
  readonly sandbox: {
    readonly memoryBytes?: number | undefined
    readonly milliCpus?: number | undefined
    readonly pids?: number | undefined
    readonly diskBytes?: number | undefined
    readonly networks?: readonly NetworkPolicy[] | undefined
    /** Null: a sandbox may stay idle forever. */
    readonly idleSeconds?: number | null | undefined
  }
  /** What the sandboxes of one account may have together. */
  readonly account: { readonly [R in Resource]?: number | null | undefined }
  /** What all sandboxes may have together. */
  readonly machine: {
    readonly [R in Exclude<Resource, 'sessions' | 'storedBytes'>]?: number | null | undefined
  }
  /** How many times the machine's memory and CPUs may be promised to sandboxes. */
  readonly overcommit: {
    readonly memory?: number | undefined
    readonly cpus?: number | undefined
  }
  /** Settings of a sandbox that requests none. */
  readonly defaults: {
    readonly memoryBytes?: number | undefined
    readonly milliCpus?: number | undefined
    readonly pids?: number | undefined
    readonly diskBytes?: number | undefined
    readonly network?: NetworkPolicy | undefined
    readonly idleSeconds?: number | undefined
  }
}

export const NO_CEILING_SETTINGS: CeilingSettings = {
  sandbox: {},
  account: {},
  machine: {},
  overcommit: {},
  defaults: {},
}

/** Sandboxes of a machine or an account. */
const MAX_SANDBOXES = 1_000_000
/** Slots have at most four digits. */
const MAX_RUNNING = 10_000
const MAX_SESSIONS = 10_000_000
const MAX_BYTES = 2 ** 53 - 1
const MAX_IDLE_SECONDS = 30 * 24 * 60 * 60
const MAX_OVERCOMMIT = 1_000

const optional = <T>(field: Field<T>): Field<T | undefined> => ({ ...field, fallback: undefined })

function integer(min: number, max: number): Field<number | undefined> {
  return optional({ schema: schema.integer(min, max), expected: `a whole number from ${min} to ${max}` })
}

function integerOrNull(min: number, max: number): Field<number | null | undefined> {
  return optional({
    schema: schema.nullable(schema.integer(min, max)),
    expected: `a whole number from ${min} to ${max}, or null for none`,
  })
}

const factor: Field<number | undefined> = optional({
  schema: {
    decode: (value) =>
      typeof value === 'number' && value >= 1 && value <= MAX_OVERCOMMIT ? value : undefined,
    describe: 'factor',
  },
  expected: `a number from 1 to ${MAX_OVERCOMMIT}`,
})

const policy = schema.oneOf(NETWORK_POLICIES)
const networks: Field<readonly NetworkPolicy[] | undefined> = optional({
  schema: {
    decode: (value) => {
      const decoded = schema.list(policy, NETWORK_POLICIES.length).decode(value)
      return decoded === undefined || decoded.length === 0 ? undefined : decoded
    },
    describe: 'networks',
  },
  expected: `a list of ${NETWORK_POLICIES.join(', ')}`,
})

/** Limits of a sandbox, in the ranges that the API accepts. */
const limits = {
  memoryBytes: integer(16 * 1024 ** 2, 1024 ** 4),
  milliCpus: integer(10, 1_000_000),
  pids: integer(8, 100_000),
  diskBytes: integer(1024 ** 2, 1024 ** 5),
}
const totals = {
  running: integerOrNull(0, MAX_RUNNING),
  memoryBytes: integerOrNull(0, MAX_BYTES),
  milliCpus: integerOrNull(0, MAX_BYTES),
  pids: integerOrNull(0, MAX_BYTES),
  sandboxes: integerOrNull(0, MAX_SANDBOXES),
  diskBytes: integerOrNull(0, MAX_BYTES),
}
const LEVELS = {
  sandbox: { ...limits, networks, idleSeconds: integerOrNull(1, MAX_IDLE_SECONDS) },
  account: { ...totals, storedBytes: integerOrNull(0, MAX_BYTES), sessions: integerOrNull(0, MAX_SESSIONS) },
  // Each running sandbox has a slot, so their number is never unlimited.
  machine: { ...totals, running: integer(1, MAX_RUNNING) },
  overcommit: { memory: factor, cpus: factor },
  defaults: {
    ...limits,
    network: optional({ schema: policy, expected: `one of ${NETWORK_POLICIES.join(', ')}` }),
    idleSeconds: integer(1, MAX_IDLE_SECONDS),
  },
}

/** Validates the operator's ceilings; adds every problem to `problems`. */
export function validateCeilingSettings(raw: unknown, problems: string[]): CeilingSettings {
  const level = { ...optional({ schema: anything, expected: 'an object' }) }
  const names = { sandbox: level, account: level, machine: level, overcommit: level, defaults: level }
  const given = validateRecord('ceilings', raw, names, problems)
  if (given === undefined) return NO_CEILING_SETTINGS
  const validate = <K extends keyof typeof LEVELS>(name: K) =>
    validateRecord(`ceilings.${name}`, given[name] === undefined ? {} : given[name], LEVELS[name], problems)
  const settings: CeilingSettings = {
    sandbox: validate('sandbox') ?? {},
    account: validate('account') ?? {},
    machine: validate('machine') ?? {},
    overcommit: validate('overcommit') ?? {},
    defaults: validate('defaults') ?? {},
  }
  const { networks } = settings.sandbox
  const { network } = settings.defaults
  if (network !== undefined && networks?.includes(network) === false)
    problems.push('ceilings.defaults: "network" must be allowed by ceilings.sandbox.networks')
  return settings
}

/** Fewest and most slots of a machine. A thousand slow the start of control by 20 ms. */
const MIN_SLOTS = 100
const MAX_SLOTS = 1_000
/** About what an idle sandbox uses. */
const IDLE_SANDBOX_BYTES = 128 * 1024 ** 2

/** How many sandboxes may run at once where the operator sets no number: more on a machine with more memory. */
export function runningSandboxes(settings: CeilingSettings, memoryBytes: number): number {
  const derived = Math.floor(memoryBytes / IDLE_SANDBOX_BYTES)
  return settings.machine.running ?? Math.min(MAX_SLOTS, Math.max(MIN_SLOTS, derived))
}
