/** A run this long is a good one: the next death is answered at once again. */
export const STEADY_MS = 5_000
const FIRST_MS = 50
const LONGEST_MS = 5_000

/** How long to wait before starting again what died, the more often the longer; the first time not at all. */
export function restartDelayMs(failures: number): number {
  return failures === 0 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures, 16))
}
