import { Random, readProcessMemory } from '@sandwire/testing'
import { openUnaffectedPlainSession } from '../e2e/support/unaffected-plain-session.ts'
import { type RunningSandboxd, startSandboxd } from '../e2e/support/sandboxd.ts'
import type { FuzzTarget } from './targets.ts'

export interface CampaignOptions {
  readonly target: FuzzTarget
  readonly seed: number
  /** The run ends at whichever limit comes first. */
  readonly maxAttacks: number
  readonly maxMs: number
}

export interface CampaignReport {
  readonly attacks: number
  readonly ms: number
  /** Resident bytes of sandboxd after a warm-up, and at the end. */
  readonly rssBytes: { readonly warm: number; readonly end: number }
}

/** Concurrent attacks: they mostly wait for a response. */
const PARALLEL = 8

/** Fraction of a campaign that counts as warm-up. */
const WARM_SHARE = 0.25

/** Starts a sandboxd without rate limits, which would keep most attacks from the decoders. */
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

function findErrors(sandboxd: RunningSandboxd): string[] {
  return sandboxd
    .logs()
    .filter((line) => typeof line === 'string' || line['level'] === 'error')
    .map((line) => JSON.stringify(line))
}

/** Runs one attack, which replays from its own seed alone. */
async function attackOnce(sandboxd: RunningSandboxd, target: FuzzTarget, seed: number): Promise<void> {
  try {
    await target.attack(new Random(seed), sandboxd)
  } catch (error) {
    throw new Error(`Attack on "${target.name}" with seed ${seed} failed`, { cause: error })
  }
}

/** Attacks until a limit is reached. Rejects with the seed of the attack that failed. */
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
  const errors = findErrors(sandboxd)
  if (errors.length > 0)
    throw new Error(`Attacks on "${target.name}" from seed ${seed} caused ${errors.join('\n')}`)
  const end = residentBytes()
  return { attacks, ms: elapsedMs(), rssBytes: { warm: warm ?? end, end } }
}
