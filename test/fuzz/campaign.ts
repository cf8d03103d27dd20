import { Random, readProcessMemory } from '@sandwire/testing'
import { openUnaffectedPlainSession } from '../e2e/support/unaffected-plain-session.ts'
import { type RunningSandboxd, startSandboxd } from '../e2e/support/sandboxd.ts'
import type { FuzzTarget } from './targets.ts'

export interface CampaignOptions {
  readonly target: FuzzTarget
  readonly seed: number
  /** Ends at whichever comes first. */
  readonly maxAttacks: number
  readonly maxMs: number
}

export interface CampaignReport {
  readonly attacks: number
  readonly ms: number
  /** Resident bytes of sandboxd after a warm-up, and at the end. */
  readonly rssBytes: { readonly warm: number; readonly end: number }
}

/** Attacks at a time: most of their time is waiting for an answer. */
const PARALLEL = 8

/** Share of a campaign after which memory counts as warm. */
const WARM_SHARE = 0.25

/** Limits are lifted: refusing for rate would keep most attacks from the decoders. */
export function startFuzzedSandboxd(): Promise<RunningSandboxd> {
  return startSandboxd({
    args: [
      '--requests-per-second',
      '1000000',
      '--messages-per-second',
      '1000000',
      '--max-sessions',
      '100000',
    ],
  })
}

function findFaults(sandboxd: RunningSandboxd): string[] {
  return sandboxd
    .logs()
    .filter((line) => typeof line === 'string' || line['level'] === 'error')
    .map((line) => JSON.stringify(line))
}

/** Each attack replays from its own seed, without those before it. */
async function attackOnce(sandboxd: RunningSandboxd, target: FuzzTarget, seed: number): Promise<void> {
  try {
    await target.attack(new Random(seed), sandboxd)
  } catch (error) {
    throw new Error(`Attack on "${target.name}" with seed ${seed} failed`, { cause: error })
  }
}

/** Attacks until time or count is up. Rejects with seed and number of the attack that broke something. */
export async function runCampaign(
  sandboxd: RunningSandboxd,
  options: CampaignOptions,
): Promise<CampaignReport> {
  const { target, seed, maxAttacks, maxMs } = options
  await using unaffected = await openUnaffectedPlainSession(sandboxd)
  const residentBytes = (): number => readProcessMemory(sandboxd.pid).rssBytes
  const startedMs = performance.now()
  const elapsedMs = (): number => performance.now() - startedMs
  let attacks = 0
  let warm: number | undefined
  while (attacks < maxAttacks && elapsedMs() < maxMs) {
    const batch = Array.from({ length: PARALLEL }, (_, index) =>
      attackOnce(sandboxd, target, (seed + attacks + index) >>> 0),
    )
    await Promise.all(batch)
    attacks += PARALLEL
    const isWarm = attacks >= maxAttacks * WARM_SHARE || elapsedMs() >= maxMs * WARM_SHARE
    if (isWarm) warm ??= residentBytes()
    await unaffected.check()
  }
  await unaffected.check()
  const faults = findFaults(sandboxd)
  if (faults.length > 0)
    throw new Error(`Attacks on "${target.name}" from seed ${seed} caused ${faults.join('\n')}`)
  const end = residentBytes()
  return { attacks, ms: elapsedMs(), rssBytes: { warm: warm ?? end, end } }
}
