import { readFileSync, writeFileSync } from 'node:fs'
import { schema } from '@sandwire/protocol'
import { identifyProcess, isRunning, type ProcessIdentity } from '../data/process-identity.ts'
import { pollUntil } from '../poll.ts'
import { findInit, signalProcess } from './process-table.ts'
import type { SandboxFolders } from './sandbox-folders.ts'

/** bubblewrap reports its init within milliseconds. */
const REPORT_MS = 5_000

const identitySchema = schema.record({
  pid: schema.integer(1, 2 ** 31),
  startTicks: schema.nonNegativeInteger,
})

/**
 * The init of a sandbox's pid namespace. The kernel kills every other process of the namespace before init ends, so nothing of
 * the sandbox runs once it is gone, whatever its processes did to init or to themselves.
 */
export class SandboxInit {
  readonly #identity: ProcessIdentity | undefined

  private constructor(identity: ProcessIdentity | undefined) {
    this.#identity = identity
  }

  /** Waits until bubblewrap has started init, and records it. `isOver` ends the wait. */
  static async record(folders: SandboxFolders, isOver: () => boolean): Promise<SandboxInit> {
    let pid: number | undefined
    await pollUntil(() => {
      pid = findInit(folders.info)
      return pid !== undefined || isOver()
    }, REPORT_MS)
    const identity = pid === undefined ? undefined : identifyProcess(pid)
    writeFileSync(folders.init, JSON.stringify(identity ?? null), { mode: 0o600 })
    return new SandboxInit(identity)
  }

  /** The init that an earlier supervisor recorded. */
  static read(folders: SandboxFolders): SandboxInit {
    try {
      return new SandboxInit(identitySchema.decode(JSON.parse(readFileSync(folders.init, 'utf8'))))
    } catch {
      // Never launched, or cleaned up before.
      return new SandboxInit(undefined)
    }
  }

  get isGone(): boolean {
    return this.#identity === undefined || !isRunning(this.#identity)
  }

  kill(): void {
    if (this.#identity !== undefined && !this.isGone) signalProcess(this.#identity.pid, 'SIGKILL')
  }
}
