import { findBubblewrapProblem } from '../../apps/host/src/isolation/choose-isolation.ts'
import { describeSandboxManager } from './support/sandbox-manager-contract.ts'
import { SandboxManagerFixture } from './support/sandbox-manager-fixture.ts'

describeSandboxManager('sandboxes without isolation', () => SandboxManagerFixture.open('none'))
if ((await findBubblewrapProblem()) === undefined)
  describeSandboxManager('sandboxes in bubblewrap', () => SandboxManagerFixture.open('bubblewrap'))
