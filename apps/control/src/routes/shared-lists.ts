import { withTimeout } from '@sandwire/async'
import { unwrap } from '../outcome.ts'
import type { AccessName } from '../sandbox/access.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { Directory } from '../sandbox/directory.ts'
import type { HeldGrant } from '../sandbox/grants.ts'
import type { SandboxView } from '../sandbox/record.ts'
import type { SessionFacts } from '../sandbox/session-view.ts'

/** How long a list waits for a sandbox that does not answer. */
const ANSWER_MS = 2_000

/** A session of somebody else, and how one is there. */
export type SharedSession = SessionFacts & {
  readonly sandbox: string
  readonly sandboxName?: string
  readonly access: AccessName
  readonly owner: string
}

/** What answered in time; the rest is left out, as if it were stopped. */
async function answered<T>(asked: readonly Promise<T>[]): Promise<readonly T[]> {
  const timed = asked.map((one) => withTimeout(one, ANSWER_MS, () => new Error('It does not answer')))
  const settled = await Promise.allSettled(timed)
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
}

/** One of each; of several, the first. */
function distinct<T>(items: readonly T[], idOf: (item: T) => string): readonly T[] {
  return [...new Map(items.toReversed().map((item) => [idOf(item), item])).values()].toReversed()
}

/** Those that give more first. */
function byRole(grants: readonly HeldGrant[]): readonly HeldGrant[] {
  return grants.toSorted((left, right) => left.role.localeCompare(right.role))
}

/** Sandboxes of others that an account may see. */
export async function sharedSandboxes(
  directory: Directory,
  call: SandboxCall,
): Promise<readonly SandboxView[]> {
  const whole = (await directory.sharedWith(call.identity)).filter(({ session }) => session === undefined)
  const ids = [...new Set(whole.map(({ sandbox }) => sandbox))]
  return answered(ids.map(async (id) => unwrap(await directory.sandbox(id).lastKnown(call))))
}

/** Sessions of others that an account may see: of sandboxes shared whole, and shared one by one. */
export async function sharedSessions(
  directory: Directory,
  call: SandboxCall,
): Promise<readonly SharedSession[]> {
  const grants = byRole(await directory.sharedWith(call.identity))
  const read = async (grant: HeldGrant): Promise<readonly SharedSession[]> => {
    const { sandbox, sandboxName, session, role, ownerName } = grant
    const object = directory.sandbox(sandbox)
    const mark = {
      sandbox,
      access: role,
      owner: ownerName,
      ...(sandboxName === undefined ? {} : { sandboxName }),
    }
    const sessions =
      session === undefined
        ? unwrap(await object.refreshSessions(call))
        : [unwrap(await object.showSession(call, session))]
    return sessions.map((facts) => ({ ...facts, ...mark }))
  }
  return distinct((await answered(grants.map(read))).flat(), ({ id }) => id)
}
