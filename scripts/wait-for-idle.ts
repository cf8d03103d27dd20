import { cpus } from 'node:os'

/** Share of all processor time. A group of tests uses about a fifth of two processors. */
const MIN_IDLE_SHARE = 0.25
const INTERVAL_MS = 6_000
/** How soon it notices that waiting is pointless. */
const POLL_MS = 500

/** Time of all processors since the machine started. */
function readProcessorTimes(): { readonly idle: number; readonly all: number } {
  const times = cpus().map((cpu) => cpu.times)
  const all = times.flatMap((each) => Object.values(each))
  return {
    idle: times.reduce((sum, { idle }) => sum + idle, 0),
    all: all.reduce((sum, each) => sum + each, 0),
  }
}

/** Waits until the processors were idle enough for an interval; false as soon as `isNeeded` returns false. */
export async function waitForIdle(isNeeded: () => boolean): Promise<boolean> {
  for (;;) {
    const before = readProcessorTimes()
    const endMs = performance.now() + INTERVAL_MS
    while (performance.now() < endMs) {
      if (!isNeeded()) return false
      await Bun.sleep(POLL_MS)
    }
    const after = readProcessorTimes()
    if (after.idle - before.idle > MIN_IDLE_SHARE * (after.all - before.all)) return isNeeded()
  }
}
