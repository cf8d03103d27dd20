import { DEFAULT_LIMITS, type Role, type SessionLimits, type SessionOptions } from '@sandwire/protocol'
import type { Random } from '../random.ts'
import type { NetworkConditions } from './sim-connection.ts'
import type { ProcessPlan } from './sim-process.ts'

/** What a scenario exercises, besides faults of every kind. */
export type ScenarioKind =
  /** Clients join, write, read and lose their connections. */
  | 'common'
  /** Clients take the lease from each other. */
  | 'takes'
  /** The creator stops consuming output for a minute. */
  | 'freeze'
  /** The creator detaches, and a new client takes over as driver. */
  | 'rejoin'
  /** No client reconnects within the keep time. */
  | 'reap'
  /** The creator speaks the plain dialect. */
  | 'plain'
  /** Another principal presents the creator's attachment identity. */
  | 'intruder'

/** What one seed runs. */
export interface Scenario {
  readonly kind: ScenarioKind
  readonly isPty: boolean
  readonly options: Omit<SessionOptions, 'id'>
  readonly process: ProcessPlan
  /** Roles of the clients; the first one creates the session. */
  readonly roles: readonly Role[]
  readonly network: NetworkConditions
  readonly lagMs: number
  readonly inputBytes: number
  /** Faults are injected until then; afterwards everything must be delivered. */
  readonly faultsUntilMs: number
  readonly faultEveryMs: number
  /** When the event of its kind happens. */
  readonly eventAtMs: number
}

/** Longer than any outage, so no session is reaped. */
const LONG_KEEP_SECONDS = 3_600

/** A size that is often tiny, to find off-by-one errors. */
function size(random: Random, large: number): number {
  return random.pick([1, 2, 3, random.int(1, 64), random.int(1, large), large])
}

function limits(random: Random): SessionLimits {
  const maxBytes = size(random, 4096)
  return {
    ...DEFAULT_LIMITS,
    logBytes: size(random, 4096),
    window: { startBytes: Math.min(maxBytes, size(random, 1024)), minBytes: random.pick([1, 16]), maxBytes },
    inputWindowBytes: size(random, 1024),
    turnBytes: size(random, 2048),
    maxAttachments: 8,
    outputBytesPerSecond: random.chance(0.1) ? random.int(2_000, 20_000) : 0,
  }
}

function processPlan(random: Random, isPty: boolean): ProcessPlan {
  const totalBytes = random.pick([0, 1, random.int(0, 100), random.int(0, 900)])
  return {
    isPty,
    totalBytes,
    maxChunkBytes: size(random, 300),
    paceMs: random.pick([0, 1, 20, 200]),
    inputLagMs: random.pick([0, 1, 20, 300]),
    waitsForEof: random.chance(0.5),
    closesInputAfter: random.chance(0.1) ? random.int(1, 100) : undefined,
    exit: random.chance(0.2)
      ? { code: null, signal: 'SIGTERM', truncated: random.chance(0.5) }
      : { code: random.int(0, 255), signal: null, truncated: false },
  }
}

function network(random: Random): NetworkConditions {
  const maxDelayMs = random.pick([0, 1, 5, 40, 200])
  return {
    minDelayMs: random.int(0, maxDelayMs),
    maxDelayMs,
    isSliced: random.chance(0.1),
    bufferBytes: random.pick([0, 10, 1_000, 1_000_000]),
  }
}

function drawRoles(random: Random, kind: ScenarioKind): Role[] {
  const roles: Role[] = ['driver']
  const others = kind === 'takes' ? random.int(1, 3) : random.pick([0, 0, 1, 2, 3])
  for (let index = 0; index < others; index += 1) {
    roles.push(
      kind === 'plain' ? 'viewer' : random.pick(['viewer', 'collaborator', 'collaborator', 'driver']),
    )
  }
  return roles
}

function keepSeconds(random: Random, kind: ScenarioKind): number {
  if (kind === 'plain') return 0
  return kind === 'reap' ? random.pick([0, 1, 5]) : LONG_KEEP_SECONDS
}

export function drawScenario(random: Random): Scenario {
  const kind = random.pick<ScenarioKind>([
    'common',
    'common',
    'common',
    'takes',
    'takes',
    'freeze',
    'rejoin',
    'reap',
    'plain',
    'intruder',
  ])
  const isPty = random.chance(0.5)
  const isCalm = kind === 'freeze' && random.chance(0.5)
  return {
    kind,
    isPty,
    options: {
      mode: isPty ? 'pty' : 'pipe',
      overflow: random.chance(0.5) ? 'block' : 'trim',
      keepSeconds: keepSeconds(random, kind),
      limits: limits(random),
    },
    process: processPlan(random, isPty),
    roles: drawRoles(random, kind),
    network: network(random),
    lagMs: random.pick([0, 0, 5, 100]),
    inputBytes: random.pick([0, 1, random.int(1, 40), random.int(1, 400)]),
    faultsUntilMs: isCalm ? 0 : random.int(0, 20_000),
    faultEveryMs: random.pick([50, 200, 1_000, 5_000]),
    eventAtMs: random.int(0, 2_000),
  }
}
