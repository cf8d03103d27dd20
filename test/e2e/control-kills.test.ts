import { expect, test } from 'bun:test'
import { runWorkerdKillStress } from '../fuzz/workerd-kill-stress.ts'
import { startHost } from './support/control.ts'

const TOTAL_BYTES = 96 * 1024 * 1024
/** `npm run soak` makes 1,000. */
const KILLS = 15

test(`96 MiB each way arrive exactly once while workerd is killed ${KILLS} times`, async () => {
  await using host = await startHost()
  const options = { host, sandbox: 'kills', seed: 7, kills: KILLS, totalBytes: TOTAL_BYTES }
  const result = await runWorkerdKillStress(options)
  expect(result.kills).toBe(KILLS)
  expect(result.returnedBytes).toBe(TOTAL_BYTES)
  expect(result.returned).toBe(result.written)
  // The benchmark measures how long each took; this test only checks that each succeeded.
  expect(result.reattachMs.length).toBeGreaterThanOrEqual(KILLS)
  const sorted = [...result.reattachMs].sort((a, b) => a - b)
  console.log(
    `reattach: median ${sorted[sorted.length >> 1]?.toFixed(0)} ms, longest ${sorted.at(-1)?.toFixed(0)} ms`,
  )
}, 180_000)
