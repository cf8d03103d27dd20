import type { StartSpec } from '@sandwire/internal-api'
import type { Birthplace } from '../../../apps/control/test/support/stand-in-host.ts'
import type { DaemonProgram } from '../../../apps/host/src/isolation/isolation.ts'
import { findBubblewrapProblem } from '../../../apps/host/src/isolation/choose-isolation.ts'
import { KeptSandboxes } from './kept-sandboxes.ts'

/** Sandboxes for a control of its own, with real supervisors and isolation, and whatever program in them. */
export class KeptBirthplace implements Birthplace, AsyncDisposable {
  readonly #kept: KeptSandboxes

  private constructor(kept: KeptSandboxes) {
    this.#kept = kept
  }

  static async open(program?: DaemonProgram): Promise<KeptBirthplace> {
    const kind = (await findBubblewrapProblem()) === undefined ? 'bubblewrap' : 'none'
    return new KeptBirthplace(await KeptSandboxes.open(kind, program))
  }

  async start(spec: StartSpec): Promise<string> {
    const status = await this.#kept.keeper.start(spec)
    if (status.state !== 'running') throw new Error(`Cannot start the sandbox: it is ${status.state}`)
    return this.#kept.socketOf(status.address)
  }

  async stop(id: string): Promise<void> {
    await this.#kept.keeper.stop(id)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#kept[Symbol.asyncDispose]()
  }
}
