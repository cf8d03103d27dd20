// Attacks every decoder over real sockets:
// bun test/fuzz/frames.ts [--target NAME] [--seed N] [--count N] [--seconds N]

import { readOptions, readWholeNumber } from '../../scripts/read-options.ts'
import { runCampaign, startFuzzedSandboxd } from './campaign.ts'
import { TARGETS } from './targets.ts'

const MEBIBYTE = 1024 * 1024

/** Growth between warm-up and end that counts as a leak. */
const MAX_DRIFT_BYTES = 64 * MEBIBYTE

const USAGE = 'npm run fuzz -- [--target NAME] [--seed N] [--count N] [--seconds N]'
const values = readOptions(
  {
    target: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() >>> 0) },
    /** Attacks per decoder. */
    count: { type: 'string', default: '10000' },
    /** Time per decoder. */
    seconds: { type: 'string', default: '60' },
  },
  USAGE,
)

const targets = TARGETS.filter(({ name }) => values.target === undefined || name === values.target)
if (targets.length === 0) {
  console.error(`error: no target "${values.target}"`)
  console.error(`hint: use one of ${TARGETS.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}

const seed = readWholeNumber(values.seed, USAGE)
console.log(`seed ${seed}`)
let isGreen = true
for (const target of targets) {
  await using sandboxd = await startFuzzedSandboxd()
  try {
    const options = {
      target,
      seed,
      maxAttacks: readWholeNumber(values.count, USAGE),
      maxMs: readWholeNumber(values.seconds, USAGE) * 1000,
    }
    const { attacks, ms, rssBytes } = await runCampaign(sandboxd, options)
    const rate = Math.round(attacks / (ms / 1000))
    const drift = rssBytes.end - rssBytes.warm
    const isLeaking = drift > MAX_DRIFT_BYTES
    if (isLeaking) isGreen = false
    const memory = `${Math.round(rssBytes.end / MEBIBYTE)} MiB, drift ${(drift / MEBIBYTE).toFixed(1)} MiB`
    console.log(`${target.name}: ${attacks} attacks, ${rate}/s, ${memory}${isLeaking ? ' LEAK' : ''}`)
  } catch (error) {
    isGreen = false
    console.error(error)
  }
}
process.exitCode = isGreen ? 0 : 1
