import { SandwireError } from '@sandwire/protocol'
import type { Log } from '../log.ts'
import type { SandboxManager } from './sandbox-manager.ts'

/** Supervisors stop their sandbox after ten times this long without a claim. */
const CLAIM_EVERY_MS = 60_000

/** Claims every running sandbox once. A failure does not affect the others. */
export async function claimRunningSandboxes(manager: SandboxManager, log: Log): Promise<void> {
  const running = (await manager.list()).filter(({ state }) => state === 'running')
  const results = await Promise.allSettled(running.map(({ id }) => manager.claim(id)))
  for (const [index, result] of results.entries()) {
    if (result.status === 'fulfilled') continue
    const { code, message } = SandwireError.from(result.reason)
    log.warn('claim_failed', { sandbox: running[index]?.id ?? '', code, message })
  }
}

/** Claims running sandboxes every minute until disposed. */
export function startClaimTimer(manager: SandboxManager, log: Log): Disposable {
  const timer = setInterval(() => {
    claimRunningSandboxes(manager, log).catch((error: unknown) =>
      log.error('claim_failed', { message: SandwireError.from(error).message }),
    )
  }, CLAIM_EVERY_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
