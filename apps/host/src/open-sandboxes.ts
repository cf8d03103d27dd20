import { SandwireError } from '@sandwire/protocol'
import type { Configuration } from './configuration.ts'
import type { DataFolder } from './data/data-folder.ts'
import type { SandboxKeeper } from './sandboxes/keeper.ts'

/** What makes sandboxes here, and what is weak about it on this machine. */
export interface Sandboxes {
  readonly keeper: SandboxKeeper
  readonly weaknesses: readonly string[]
}

/** Opens what makes the sandboxes of a data folder. */
export async function openSandboxes(configuration: Configuration, _folder: DataFolder): Promise<Sandboxes> {
  const none = async (): Promise<never> => {
    throw new SandwireError('sandbox_failed', 'Cannot start the sandbox: this build makes none')
  }
  const keeper: SandboxKeeper = {
    isolation: configuration.isolation ?? 'none',
    start: none,
    status: async (id) => ({ id, state: 'absent' }),
    list: async () => [],
    stop: async (id) => ({ id, state: 'absent' }),
    destroy: async () => undefined,
    sever: async () => undefined,
    readLog: async () => '',
    adopt: async () => [],
    claim: async () => undefined,
    close: async () => undefined,
  }
  return { keeper, weaknesses: [] }
}
