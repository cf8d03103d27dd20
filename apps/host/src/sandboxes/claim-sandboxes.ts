import { SandwireError } from '@sandwire/protocol'
import type { Log } from '../log.ts'
import type { SandboxManager } from './sandbox-manager.ts'

/** Supervisors wait ten times this long for a claim before they end their sandbox. */
const CLAIM_EVERY_MS = 60_000

/** Says once that every sandbox that runs is wanted. One that cannot be told does not keep the others from it. */
export async function claimRunningSandboxes(manager: SandboxManager, log: Log): Promise<void> {
  const running = (await manager.list()).filter(({ state }) => state === 'running')
  const results = await Promise.allSettled(running.map(({ id }) => manager.claim(id)))
  for (const [index, result] of results.entries()) {
    if (result.status === 'fulfilled') continue
    const { code, message } = SandwireError.from(result.reason)
    log.warn('claim_failed', { sandbox: running[index]?.id ?? '', code, message })
  }
}

/** Says every minute that the sandboxes are wanted; stops when disposed. */
export function startClaimTimer(manager: SandboxManager, log: Log): Disposable {
  const timer = setInterval(() => {
    claimRunningSandboxes(manager, log).catch((error: unknown) =>
      log.error('claim_failed', { message: SandwireError.from(error).message }),
    )
  }, CLAIM_EVERY_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
