import type { Random } from '@sandwire/testing'

/** A user attaches, works, and leaves a tab open for a while. Times count from the start of the run. */
export interface Visit {
  /** Attaches and starts a shell. */
  readonly fromMs: number
  /** Last input or output; until then there is constant activity. */
  readonly movesUntilMs: number
  /** The tab is closed; until then it reconnects. */
  readonly openUntilMs: number
}

const MINUTE_MS = 60_000

/** Mostly short, sometimes very long. */
function draw(random: Random, meanMs: number): number {
  return Math.round(-Math.log(1 - random.next()) * meanMs)
}

/** The visits to one sandbox, in order and without overlap. */
export function drawVisits(random: Random, untilMs: number): readonly Visit[] {
  const visits: Visit[] = []
  let atMs = draw(random, 120 * MINUTE_MS)
  while (atMs < untilMs) {
    const movesUntilMs = atMs + draw(random, 12 * MINUTE_MS)
    const openUntilMs = movesUntilMs + draw(random, 40 * MINUTE_MS)
    visits.push({ fromMs: atMs, movesUntilMs, openUntilMs })
    atMs = openUntilMs + MINUTE_MS + draw(random, 120 * MINUTE_MS)
  }
  return visits
}

/** Time of the last activity by then; undefined before the visit. */
export function lastMoveOf({ fromMs, movesUntilMs }: Visit, nowMs: number): number | undefined {
  return nowMs < fromMs ? undefined : Math.min(nowMs, movesUntilMs)
}
