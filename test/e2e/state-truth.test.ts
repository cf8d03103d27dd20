import { afterAll, beforeAll, describe, test } from 'bun:test'
import { findBubblewrapProblem } from '../../apps/host/src/isolation/choose-isolation.ts'
import { describeRound, type Round, StateTruth } from '../fuzz/state-truth.ts'

const reason = await findBubblewrapProblem()
if (reason !== undefined) console.error(`Skipped, because ${reason}: state after faults`)

/** `npm run soak` runs random ones. */
const ROUNDS: readonly Round[] = [
  { operation: 'create', fault: 'kill_workerd', moment: { after: 'account.claim' } },
  { operation: 'create', fault: 'kill_workerd', moment: { after: 'PUT' } },
  { operation: 'start', fault: 'kill_host', moment: 200 },
  { operation: 'stop', fault: 'freeze_host_kill_workerd', moment: { before: 'POST stop' } },
  { operation: 'share', fault: 'kill_workerd', moment: { after: 'account.addHeldGrant' } },
  { operation: 'share', fault: 'freeze_workerd', moment: { after: 'sandbox.redeemGrant' } },
  { operation: 'revoke', fault: 'kill_workerd', moment: { before: 'account.removeHeldGrant' } },
  { operation: 'destroy', fault: 'freeze_host_kill_workerd', moment: { before: 'DELETE' } },
  { operation: 'destroy', fault: 'kill_workerd', moment: { after: 'DELETE' } },
]

describe.skipIf(reason !== undefined)('list, show, files, names and grants are true after', () => {
  let truth: StateTruth

  beforeAll(async () => {
    truth = await StateTruth.open()
  })

  afterAll(() => truth?.[Symbol.asyncDispose](), 120_000)

  for (const round of ROUNDS) test(describeRound(round), () => truth.run(round), 120_000)
})
