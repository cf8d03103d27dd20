import { findBubblewrapProblem } from '../../apps/host/src/isolation/choose-isolation.ts'
import { describeKeeper } from './support/keeper-contract.ts'
import { KeptSandboxes } from './support/kept-sandboxes.ts'

describeKeeper('sandboxes that are not isolated', () => KeptSandboxes.open('none'))
if ((await findBubblewrapProblem()) === undefined)
  describeKeeper('sandboxes in bubblewrap', () => KeptSandboxes.open('bubblewrap'))
