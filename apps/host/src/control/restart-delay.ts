/** One that served this long was sound: its death is answered at once. */
const SOUND_MS = 1_000
/** Wait after the death of one that served for a moment, so that a fault at every start does not use up a processor. */
const SHORT_LIFE_MS = 100
const FIRST_MS = 50
const LONGEST_MS = 5_000

/** How long to wait before replacing one that served for `servedMs`. Clients are waiting, so it is never long. */
export function replaceDelayMs(servedMs: number): number {
  return servedMs >= SOUND_MS ? 0 : SHORT_LIFE_MS
}

/** How long to wait after a start that failed, the more in a row the longer. */
export function retryDelayMs(failures: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures, 16))
}
