import { withTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import { unwrap } from '../outcome.ts'
import type { IsOutdated } from '../providers/running.ts'
import type { AccessName } from '../sandbox/access.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import type { HeldGrant } from '../sandbox/grants.ts'
import type { SandboxView } from '../sandbox/record.ts'
import type { SessionFacts } from '../sandbox/session-view.ts'

/** How long a list waits for a sandbox that does not respond. */
const RESPONSE_MS = 2_000

/** A session of another account, with the caller's access. */
export type SharedSession = SessionFacts & {
  readonly sandbox: string
  readonly sandboxName?: string
  readonly access: AccessName
  readonly owner: string
}

/** The results that arrive in time; the others are omitted, as for a stopped sandbox. */
async function settledInTime<T>(requests: readonly Promise<T>[]): Promise<readonly T[]> {
  const timed = requests.map((one) => withTimeout(one, RESPONSE_MS, () => new Error('Timed out')))
  const settled = await Promise.allSettled(timed)
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
}

/** The first item of each id. */
function distinct<T>(items: readonly T[], idOf: (item: T) => string): readonly T[] {
  return [...new Map(items.toReversed().map((item) => [idOf(item), item])).values()].toReversed()
}

/** Collaborator grants first. */
function byRole(grants: readonly HeldGrant[]): readonly HeldGrant[] {
  return grants.toSorted((left, right) => left.role.localeCompare(right.role))
}

/** The account has the sandbox, and its own object does not know it. */
function withoutDatabase(view: SandboxView): SandboxView {
  return { ...view, state: 'failed', reason: 'database_missing', startedMs: null }
}

/** The views of a list; sandboxes whose view is outdated are asked. One that does not respond keeps its view. */
export function currentViews(
  lookup: SandboxLookup,
  call: SandboxCall,
  views: readonly SandboxView[],
  isOutdated: IsOutdated,
): Promise<readonly SandboxView[]> {
  const read = async (view: SandboxView): Promise<SandboxView> => {
    if (!isOutdated(view)) return view
    // Lists are not audited.
    const { action: _, ...reading } = call
    const ask = async (): Promise<SandboxView> => unwrap(await lookup.sandbox(view.id).describe(reading))
    return withTimeout(ask(), RESPONSE_MS, () => new Error('Timed out')).catch((caught: unknown) =>
      SandwireError.from(caught).code === 'sandbox_not_found' ? withoutDatabase(view) : view,
    )
  }
  return Promise.all(views.map(read))
}

/** Sandboxes of other accounts that are shared with the caller. */
export async function sharedSandboxes(
  lookup: SandboxLookup,
  call: SandboxCall,
): Promise<readonly SandboxView[]> {
  const whole = (await lookup.sharedWith(call.identity)).filter(({ session }) => session === undefined)
  const ids = [...new Set(whole.map(({ sandbox }) => sandbox))]
  return settledInTime(ids.map(async (id) => unwrap(await lookup.sandbox(id).lastKnown(call))))
}

/** Sessions of other accounts that are shared with the caller, alone or with their sandbox. */
export async function sharedSessions(
  lookup: SandboxLookup,
  call: SandboxCall,
): Promise<readonly SharedSession[]> {
  const grants = byRole(await lookup.sharedWith(call.identity))
  const read = async (grant: HeldGrant): Promise<readonly SharedSession[]> => {
    const { sandbox, sandboxName, session, role, ownerName } = grant
    const object = lookup.sandbox(sandbox)
    const access = {
      sandbox,
      access: role,
      owner: ownerName,
      ...(sandboxName === undefined ? {} : { sandboxName }),
    }
    const sessions =
      session === undefined
        ? unwrap(await object.refreshSessions(call))
        : [unwrap(await object.showSession(call, session))]
    return sessions.map((facts) => ({ ...facts, ...access }))
  }
  return distinct((await settledInTime(grants.map(read))).flat(), ({ id }) => id)
}
