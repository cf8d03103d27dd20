import type { StartSpec } from '@sandwire/internal-api'
import type { SandboxRunner } from '../../../apps/control/test/support/fake-host.ts'
import type { DaemonProgram } from '../../../apps/host/src/isolation/isolation.ts'
import { findBubblewrapProblem } from '../../../apps/host/src/isolation/choose-isolation.ts'
import { SandboxManagerFixture } from './sandbox-manager-fixture.ts'

/** Sandboxes for tests of control, with real supervisors and isolation, running sandboxd or another program. */
export class ManagedSandboxes implements SandboxRunner, AsyncDisposable {
  readonly #fixture: SandboxManagerFixture

  private constructor(fixture: SandboxManagerFixture) {
    this.#fixture = fixture
  }

  static async open(program?: DaemonProgram): Promise<ManagedSandboxes> {
    const kind = (await findBubblewrapProblem()) === undefined ? 'bubblewrap' : 'none'
    return new ManagedSandboxes(await SandboxManagerFixture.open(kind, program))
  }

  async start(spec: StartSpec): Promise<string> {
    const status = await this.#fixture.manager.start(spec)
    if (status.state !== 'running') throw new Error(`Cannot start the sandbox: it is ${status.state}`)
    return this.#fixture.socketOf(status.address)
  }

  async stop(id: string): Promise<void> {
    await this.#fixture.manager.stop(id)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#fixture[Symbol.asyncDispose]()
  }
}
