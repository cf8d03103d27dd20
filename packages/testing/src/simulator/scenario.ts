import { DEFAULT_LIMITS, type Role, type SessionLimits, type SessionOptions } from '@sandwire/protocol'
import type { Random } from '../random.ts'
import type { LinkWeather } from './sim-link.ts'
import type { ProcessPlan } from './sim-process.ts'

/** What one seed tries. */
export interface Scenario {
  readonly isPty: boolean
  readonly options: Omit<SessionOptions, 'id'>
  readonly process: ProcessPlan
  /** Roles of the clients; the first one creates the session. */
  readonly roles: readonly Role[]
  /** Clients take the lease from each other. */
  readonly hasTakes: boolean
  readonly weather: LinkWeather
  readonly lagMs: number
  readonly inputBytes: number
  /** Faults happen until then; afterwards everything must be delivered. */
  readonly faultsUntilMs: number
  readonly faultEveryMs: number
}

/** A size that is often tiny, because off-by-one lives there. */
function size(random: Random, large: number): number {
  return random.pick([1, 2, 3, random.int(1, 64), random.int(1, large), large])
}

function limits(random: Random): SessionLimits {
  const maxBytes = size(random, 4096)
  return {
    ...DEFAULT_LIMITS,
    logBytes: size(random, 4096),
    window: { startBytes: Math.min(maxBytes, size(random, 1024)), minBytes: 1, maxBytes },
    inputWindowBytes: size(random, 1024),
    turnBytes: size(random, 2048),
    maxAttachments: 8,
    outputBytesPerSecond: random.chance(0.1) ? random.int(2_000, 20_000) : 0,
  }
}

export function drawScenario(random: Random): Scenario {
  const isPty = random.chance(0.5)
  const others = random.pick([0, 0, 1, 2, 3])
  const roles: Role[] = ['driver']
  for (let index = 0; index < others; index += 1)
    roles.push(random.pick(['viewer', 'collaborator', 'collaborator', 'driver']))
  const maxDelayMs = random.pick([0, 1, 5, 40, 200])
  return {
    isPty,
    options: {
      mode: isPty ? 'pty' : 'pipe',
      overflow: random.chance(0.5) ? 'block' : 'trim',
      keepSeconds: 3_600,
      limits: limits(random),
    },
    process: {
      isPty,
      totalBytes: random.pick([0, 1, random.int(0, 100), random.int(0, 1_500)]),
      maxChunkBytes: size(random, 300),
      paceMs: random.pick([0, 1, 20, 200]),
      inputLagMs: random.pick([0, 1, 20, 300]),
      waitsForEof: random.chance(0.5),
      exit: random.chance(0.2)
        ? { code: null, signal: 'SIGTERM', truncated: random.chance(0.5) }
        : { code: random.int(0, 255), signal: null, truncated: false },
    },
    roles,
    hasTakes: others > 0 && random.chance(0.3),
    weather: {
      minDelayMs: random.int(0, maxDelayMs),
      maxDelayMs,
      isSliced: random.chance(0.15),
      bufferBytes: random.pick([0, 10, 1_000, 1_000_000]),
    },
    lagMs: random.pick([0, 0, 5, 100]),
    inputBytes: random.pick([0, 1, random.int(1, 40), random.int(1, 600)]),
    faultsUntilMs: random.int(0, 20_000),
    faultEveryMs: random.pick([50, 200, 1_000, 5_000]),
  }
}
