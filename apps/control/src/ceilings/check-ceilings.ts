import type { NetworkSpec, SandboxLimits } from '@sandwire/internal-api'
import { type Amounts, type Maximums, type Resource, RESOURCES } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import type { Ceilings } from './ceilings.ts'

/** Settings of a new sandbox. */
export interface SandboxRequest {
  readonly limits: SandboxLimits
  readonly network: Pick<NetworkSpec, 'policy'>
  /** Null: never stops for being idle. Absent: the default. */
  readonly idleSeconds?: number | null
}

/** What a request needs. */
export interface CeilingRequest {
  readonly sandbox?: SandboxRequest
  /** What it adds to the use of the account and of the machine. */
  readonly adds?: Amounts
}

/** What is in use without the request. The ceilings of an absent level are not checked. */
export interface CeilingUsage {
  /** Of the account that asks. */
  readonly account?: Amounts
  /** Of all accounts, the one that asks included. */
  readonly machine?: Amounts
}

/** A ceiling that a request exceeds. */
export interface CeilingViolation {
  readonly level: 'sandbox' | 'account' | 'machine'
  readonly resource: Resource | 'networks' | 'idleSeconds'
  readonly limit: number | readonly string[]
  readonly asked: number | string | null
  /** Absent for the ceilings of one sandbox. */
  readonly used?: number
  /** There is enough, but it is reserved for other accounts. */
  readonly isReserved?: true
}

const LIMIT_NAMES = ['memoryBytes', 'milliCpus', 'pids', 'diskBytes'] as const

function checkSandbox(
  { limits, network, idleSeconds }: SandboxRequest,
  { sandbox }: Ceilings,
): CeilingViolation | undefined {
  const level = 'sandbox'
  for (const resource of LIMIT_NAMES)
    if (limits[resource] > sandbox[resource])
      return { level, resource, limit: sandbox[resource], asked: limits[resource] }
  if (!sandbox.networks.includes(network.policy))
    return { level, resource: 'networks', limit: sandbox.networks, asked: network.policy }
  const highest = sandbox.idleSeconds
  if (highest === null || idleSeconds === undefined) return undefined
  return idleSeconds === null || idleSeconds > highest
    ? { level, resource: 'idleSeconds', limit: highest, asked: idleSeconds }
    : undefined
}

function checkTotals(
  level: 'account' | 'machine',
  adds: Amounts,
  usage: Amounts,
  ceilings: Maximums,
): CeilingViolation | undefined {
  for (const resource of RESOURCES) {
    const { [resource]: asked = 0 } = adds
    const { [resource]: used = 0 } = usage
    const { [resource]: limit = null } = ceilings
    if (asked > 0 && limit !== null && used + asked > limit) return { level, resource, limit, asked, used }
  }
  return undefined
}

/**
 * An account may have at most as much of the machine as is left when it asks. So the first account gets half, the next one half
 * of the rest, and so on; what one account has never is the last that another needs.
 */
function checkShare(
  adds: Amounts,
  own: Amounts,
  all: Amounts,
  ceilings: Maximums,
): CeilingViolation | undefined {
  for (const resource of RESOURCES) {
    const { [resource]: asked = 0 } = adds
    const { [resource]: mine = 0 } = own
    const { [resource]: used = 0 } = all
    const { [resource]: limit = null } = ceilings
    if (asked > 0 && limit !== null && mine + asked > limit - used)
      return { level: 'machine', resource, limit, asked, used, isReserved: true }
  }
  return undefined
}

/** The first ceiling that the request exceeds; undefined when it may be granted. */
export function checkCeilings(
  { sandbox, adds = {} }: CeilingRequest,
  { account, machine }: CeilingUsage,
  ceilings: Ceilings,
): CeilingViolation | undefined {
  return (
    (sandbox === undefined ? undefined : checkSandbox(sandbox, ceilings)) ??
    (account === undefined ? undefined : checkTotals('account', adds, account, ceilings.account)) ??
    (machine === undefined ? undefined : checkTotals('machine', adds, machine, ceilings.machine)) ??
    (ceilings.isShared && account !== undefined && machine !== undefined
      ? checkShare(adds, account, machine, ceilings.machine)
      : undefined)
  )
}

const NOUNS: Readonly<Record<Resource, string>> = {
  running: 'running sandboxes',
  memoryBytes: 'memory',
  milliCpus: 'CPUs',
  pids: 'processes',
  sandboxes: 'sandboxes',
  diskBytes: 'disk space',
  storedBytes: 'saved files, runs and conversations',
  sessions: 'sessions',
}

/** Fields of a request for a sandbox. */
const FIELDS: Readonly<Partial<Record<CeilingViolation['resource'], string>>> = {
  memoryBytes: 'limits.memoryBytes',
  milliCpus: 'limits.milliCpus',
  pids: 'limits.pids',
  diskBytes: 'limits.diskBytes',
  networks: 'network.policy',
  idleSeconds: 'sleepAfterSeconds',
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10))
  return `${Number((bytes / 1024 ** power).toFixed(1))} ${UNITS[power] ?? ''}`
}

function isBytes(resource: Resource): boolean {
  return resource.endsWith('Bytes')
}

function formatAmount(resource: Resource, amount: number): string {
  if (isBytes(resource)) return formatBytes(amount)
  return String(resource === 'milliCpus' ? amount / 1000 : amount)
}

const OWNERS = { sandbox: 'a sandbox', account: 'your account', machine: 'this server' } as const

/** What is exceeded. Does not reveal how much other accounts use. */
function describe({ level, resource, limit, asked, used, isReserved }: CeilingViolation): string {
  if (resource === 'networks')
    return `its network may be ${[limit].flat().join(' or ')}, not ${String(asked)}`
  if (resource === 'idleSeconds')
    return `it must stop after at most ${String(limit)} s without input and output`
  const noun = NOUNS[resource]
  if (isReserved === true) return `the rest of the ${noun} of this server is reserved for other accounts`
  const most = formatAmount(resource, Number(limit))
  const use = level === 'account' && used !== undefined ? `in use: ${formatAmount(resource, used)}, ` : ''
  return `${OWNERS[level]} may have at most ${most}${isBytes(resource) ? ' of' : ''} ${noun} (${use}requested: ${formatAmount(resource, Number(asked))})`
}

/** The error for a request that exceeds a ceiling; `action` is what it was to do, such as `start the sandbox`. */
export function ceilingError(violation: CeilingViolation, action: string): SandwireError {
  const { level, resource, limit, asked, used } = violation
  const field = level === 'sandbox' ? FIELDS[resource] : undefined
  const details = {
    ceiling: `${level}.${resource}`,
    limit,
    asked,
    ...(level === 'account' && used !== undefined ? { used } : {}),
    ...(field === undefined ? {} : { field }),
  }
  if (level === 'account' && resource === 'sandboxes')
    return new SandwireError('too_many_sandboxes', `Cannot have more than ${String(limit)} sandboxes`, {
      details,
    })
  return new SandwireError('ceiling_exceeded', `Cannot ${action}: ${describe(violation)}`, { details })
}
