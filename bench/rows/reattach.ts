import type { RunningHost } from '../../test/e2e/support/control.ts'
import { runWorkerdKillStress } from '../../test/fuzz/workerd-kill-stress.ts'
import { openParts } from '../competitors.ts'
import { createSandbox, findIsolationProblem, openHost } from '../peers/control-plane.ts'
import { below, type Row } from '../row.ts'
import { median, quantile } from '../statistics.ts'

const SANDBOX = 'bench'

/** Kills per measurement, at random offsets of one transfer. */
const KILLS = 25
/** Fewest reattachments for a meaningful p99. */
const MIN_REATTACHMENTS = 20
const TOTAL_BYTES = 128 * 1024 * 1024

async function measureReattach(host: RunningHost, seed: number) {
  const options = { host, sandbox: SANDBOX, seed, kills: KILLS, totalBytes: TOTAL_BYTES }
  const { written, returned, reattachMs } = await runWorkerdKillStress(options)
  if (returned !== written) throw new Error(`Got SHA-256 ${returned}, expected ${written}`)
  if (reattachMs.length < MIN_REATTACHMENTS)
    throw new Error(`Got ${reattachMs.length} reattachments of ${KILLS}`)
  return { 'reattach p50': median(reattachMs), 'reattach p99': quantile(reattachMs, 0.99) }
}

export const reattach: Row = {
  id: 'reattach',
  title: 'reattach after kill -9 of control',
  unit: 'ms',
  about: `From the loss of the connection to being attached again, over ${KILLS} kills of workerd in a transfer of 128 MiB both ways whose SHA-256 is checked.`,
  targets: [below('reattach p99', 2_000, 'ms')],
  open: async () => {
    const problem = findIsolationProblem()
    if (problem !== undefined) return [{ name: 'reattach p50', absent: problem }]
    return openHost(async (host) => {
      await createSandbox(host, SANDBOX)
      let seed = 0
      return openParts({
        parts: ['reattach p50', 'reattach p99'],
        measure: () => measureReattach(host, (seed += 1)),
        close: host.stop,
      })
    })
  },
}
