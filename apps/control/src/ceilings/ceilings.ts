import { DEFAULT_SANDBOX_LIMITS, type SandboxLimits } from '@sandwire/internal-api'
import {
  type CeilingSettings,
  type Maximums,
  NETWORK_POLICIES,
  type NetworkPolicy,
  runningSandboxes,
} from '@sandwire/operator-settings'
import type { SandboxSettings } from '../sandbox/record.ts'

/** What the machine has. */
export interface MachineFacts extends SandboxLimits {
  /** How many times its disk may be promised; the host enforces that too. */
  readonly diskOvercommit: number
  /** Size of the disk with the store of versions; absent: it is not on a disk of the machine. */
  readonly storeBytes?: number
}

/** The ceilings in effect: the operator's, completed from the machine. */
export interface Ceilings {
  /** What one sandbox may request. */
  readonly sandbox: SandboxLimits & {
    readonly networks: readonly NetworkPolicy[]
    /** Null: none. */
    readonly idleSeconds: number | null
  }
  /** What the sandboxes of one account may have together. */
  readonly account: Maximums
  /** What all sandboxes may have together. */
  readonly machine: Maximums
  /** Several accounts use the machine, so each leaves as much for the others as it has. */
  readonly isShared: boolean
  /** Settings of a sandbox that requests none. */
  readonly defaults: {
    readonly limits: SandboxLimits
    readonly network: NetworkPolicy
    readonly idleSeconds: number
  }
}

export interface CeilingFacts {
  /** Absent where control does not know the machine, as on Cloudflare. */
  readonly machine?: MachineFacts | undefined
  /** Accounts besides that of the machine's owner can sign in. */
  readonly isShared: boolean
  /** Stopping an idle sandbox loses no files. */
  readonly filesSurviveStop: boolean
  /** Sandboxes of an account, unless its ceiling is set. */
  readonly maxSandboxes: number
  /** Default idle time, unless it is set. */
  readonly idleSeconds: number
}

/** The highest values that the API accepts. */
const API_MAXIMUMS: SandboxLimits = {
  memoryBytes: 1024 ** 4,
  milliCpus: 1_000_000,
  pids: 100_000,
  diskBytes: 1024 ** 5,
}

/** Over-commitment on a shared machine. CPUs are shared by the scheduler. */
const SHARED_OVERCOMMIT = { memory: 2, cpus: 16 } as const
/** Part of the machine's process ids that sandboxes get; without a free one nothing can be started. */
const PIDS_SHARE = 3 / 4
/** Part of the machine that one sandbox may request where others use it too. */
const SHARED_MEMORY_PART = 1 / 2
const SHARED_DISK_PART = 1 / 4
const SHARED_PIDS = 4_096
/** Part of the memory and of the disk that one account may have, so that it cannot use them up alone, however much is promised. */
const SHARED_ACCOUNT_PART = 1 / 2
/** Part of the disk with the store that versions, runs and conversations of one account may take. */
const SHARED_STORE_PART = 1 / 4
const SHARED_IDLE_SECONDS = 24 * 60 * 60
const SHARED_NETWORKS: readonly NetworkPolicy[] = ['none', 'allowlist']
/** Two sandboxes full of sessions. */
const SHARED_SESSIONS = 2_000

/** What one sandbox may request where the operator sets nothing: the machine, or on a shared one a part of it. */
function deriveSandboxLimits({ machine, isShared }: CeilingFacts): SandboxLimits {
  if (machine === undefined) return API_MAXIMUMS
  const part = isShared
    ? {
        memoryBytes: Math.floor(machine.memoryBytes * SHARED_MEMORY_PART),
        milliCpus: machine.milliCpus,
        pids: SHARED_PIDS,
        diskBytes: Math.floor(machine.diskBytes * SHARED_DISK_PART),
      }
    : machine
  return lowerLimits(part, API_MAXIMUMS)
}

/** What one account may have on a shared machine. */
function deriveAccount({ machine, isShared, maxSandboxes }: CeilingFacts): Maximums {
  if (!isShared) return { sandboxes: maxSandboxes, sessions: null }
  const derived: Maximums = { sandboxes: maxSandboxes, sessions: SHARED_SESSIONS }
  if (machine === undefined) return derived
  return {
    ...derived,
    memoryBytes: Math.floor(machine.memoryBytes * SHARED_ACCOUNT_PART),
    diskBytes: Math.floor(machine.diskBytes * SHARED_ACCOUNT_PART),
    storedBytes: machine.storeBytes === undefined ? null : Math.floor(machine.storeBytes * SHARED_STORE_PART),
  }
}

function lowerLimits(one: SandboxLimits, other: SandboxLimits): SandboxLimits {
  return {
    memoryBytes: Math.min(one.memoryBytes, other.memoryBytes),
    milliCpus: Math.min(one.milliCpus, other.milliCpus),
    pids: Math.min(one.pids, other.pids),
    diskBytes: Math.min(one.diskBytes, other.diskBytes),
  }
}

function deriveMachine(
  { machine: set, overcommit, ...settings }: CeilingSettings,
  facts: CeilingFacts,
): Maximums {
  const { machine, isShared } = facts
  const promise = (amount: number | undefined, factor: number | undefined, shared: number): number | null => {
    const used = factor ?? (isShared ? shared : undefined)
    return amount === undefined || used === undefined ? null : Math.floor(amount * used)
  }
  const { memory, cpus } = overcommit
  const derived: Maximums = {
    running: runningSandboxes({ machine: set, overcommit, ...settings }, machine?.memoryBytes ?? 0),
    memoryBytes: promise(machine?.memoryBytes, memory, SHARED_OVERCOMMIT.memory),
    milliCpus: promise(machine?.milliCpus, cpus, SHARED_OVERCOMMIT.cpus),
    diskBytes: promise(machine?.diskBytes, undefined, machine?.diskOvercommit ?? 1),
    pids: promise(machine?.pids, undefined, PIDS_SHARE),
  }
  return { ...derived, ...present(set) }
}

/** The entries that have a value. */
export function present<T>(entries: Readonly<Record<string, T | undefined>>): Record<string, T> {
  const kept = Object.entries(entries).flatMap(([name, value]): [string, T][] =>
    value === undefined ? [] : [[name, value]],
  )
  return Object.fromEntries(kept)
}

/** Completes the operator's ceilings. */
export function resolveCeilings(settings: CeilingSettings, facts: CeilingFacts): Ceilings {
  const { isShared, filesSurviveStop } = facts
  const { networks, idleSeconds, ...limits } = settings.sandbox
  const { network, idleSeconds: defaultIdle, ...defaults } = settings.defaults
  const highest: SandboxLimits = { ...deriveSandboxLimits(facts), ...present(limits) }
  const allowed = networks ?? (isShared ? SHARED_NETWORKS : NETWORK_POLICIES)
  const derivedIdle = isShared && filesSurviveStop ? SHARED_IDLE_SECONDS : null
  const highestIdle = idleSeconds === undefined ? derivedIdle : idleSeconds
  const idle = defaultIdle ?? facts.idleSeconds
  return {
    sandbox: { ...highest, networks: allowed, idleSeconds: highestIdle },
    account: { ...deriveAccount(facts), ...present(settings.account) },
    machine: deriveMachine(settings, facts),
    isShared,
    defaults: {
      limits: lowerLimits({ ...DEFAULT_SANDBOX_LIMITS, ...present(defaults) }, highest),
      network: network ?? (allowed.includes('none') ? 'none' : (allowed[0] ?? 'none')),
      idleSeconds: highestIdle === null ? idle : Math.min(idle, highestIdle),
    },
  }
}

/** Settings of a sandbox that requests none. */
export function defaultSettings({ defaults }: Ceilings): SandboxSettings {
  return { network: { policy: defaults.network, allow: [] }, limits: defaults.limits, env: {} }
}

/**
 * The settings with which a sandbox runs: its own, lowered to the ceilings, which may have been lowered since it was created.
 * Its disk keeps its size. Without its network policy it has no network.
 */
export function settingsWithin(
  settings: SandboxSettings,
  { sandbox }: Pick<Ceilings, 'sandbox'>,
): SandboxSettings {
  const { limits, network } = settings
  return {
    ...settings,
    limits: { ...lowerLimits(limits, sandbox), diskBytes: limits.diskBytes },
    network: sandbox.networks.includes(network.policy) ? network : { policy: 'none', allow: [] },
  }
}
