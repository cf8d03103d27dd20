// Cuts live attachments thousands of times and compares every byte: `npm run soak -- [--cuts N] [--seed N]`.

import { parseArgs } from 'node:util'
import { startSandboxd } from '../e2e/support/sandboxd.ts'
import { runCutStorm } from './cut-storm.ts'

const DEFAULT_CUTS = 10_000
/** Cuts of one session; then a new one begins, so that a run covers starts and ends as well. */
const CUTS_PER_SESSION = 250
const REPORT_EVERY_MS = 10_000
/** Sessions of each mode at a time: resuming is mostly waiting. */
const SESSIONS_PER_MODE = 4

function readWhole(text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback
  if (!/^[0-9]{1,9}$/.test(text)) throw new Error(`Cannot use "${text}": expected a whole number`)
  return Number(text)
}

const { values } = parseArgs({ options: { cuts: { type: 'string' }, seed: { type: 'string' } } })
const wanted = readWhole(values.cuts, DEFAULT_CUTS)
const firstSeed = readWhole(values.seed, crypto.getRandomValues(new Uint32Array(1))[0] ?? 0)
console.log(`soak: ${wanted} cuts, seed ${firstSeed}`)

await using sandboxd = await startSandboxd()
const startedMs = performance.now()
const totals = { cuts: 0, bytes: 0, sessions: 0 }
let nextSeed = firstSeed
let failure: Error | undefined

const report = setInterval(() => {
  const seconds = Math.round((performance.now() - startedMs) / 1000)
  const megabytes = Math.round(totals.bytes / 1e6)
  console.log(
    `soak: ${totals.cuts} of ${wanted} cuts, ${totals.sessions} sessions, ${megabytes} MB each way, ${seconds} s`,
  )
}, REPORT_EVERY_MS)

async function storm(mode: 'pipe' | 'pty'): Promise<void> {
  while (totals.cuts < wanted && failure === undefined) {
    const seed = nextSeed++
    const cuts = Math.min(CUTS_PER_SESSION, wanted - totals.cuts)
    let counted = 0
    const onCut = (done: number) => {
      totals.cuts += done - counted
      counted = done
    }
    try {
      const result = await runCutStorm({ server: sandboxd, mode, seed, cuts, onCut })
      totals.bytes += result.bytesEachWay
      totals.sessions++
      if (result.read !== result.written) throw new Error('The process read other bytes than were written')
      if (result.returned !== result.written) throw new Error('Other bytes came back than were written')
    } catch (error) {
      failure ??= new Error(`Failed in ${mode} mode with seed ${seed}`, { cause: error })
    }
  }
}

await Promise.all(Array.from({ length: SESSIONS_PER_MODE }, () => [storm('pipe'), storm('pty')]).flat())
clearInterval(report)
const seconds = Math.round((performance.now() - startedMs) / 1000)
if (failure === undefined) {
  console.log(
    `soak: passed ${totals.cuts} cuts in ${totals.sessions} sessions, ${Math.round(totals.bytes / 1e6)} MB each way, ${seconds} s`,
  )
} else {
  console.error(failure)
  console.error(`soak: FAILED; run again with --seed ${firstSeed}`)
  process.exitCode = 1
}
