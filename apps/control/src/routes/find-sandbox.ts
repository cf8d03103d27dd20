import { sandboxIdOf, sandboxIdOfConversation, sandboxIdOfRun } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { type Outcome, unwrap } from '../outcome.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { noSuchSession } from '../sandbox/not-found.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'

/** The sandbox of a session, run or conversation; throws if the id is malformed or was never issued. */
export async function findSandboxOfSession(lookup: SandboxLookup, session: string): Promise<string> {
  if (
    sandboxIdOf(session) === undefined &&
    sandboxIdOfRun(session) === undefined &&
    sandboxIdOfConversation(session) === undefined
  )
    throw new SandwireError('bad_request', 'Cannot use the session id: malformed')
  return lookup.ofSession(session)
}

/** The sandbox that a request names, directly or by one of its sessions; both must agree if both are given. */
export async function findSandbox(
  lookup: SandboxLookup,
  account: string,
  { sandbox, session }: { readonly sandbox: string | undefined; readonly session: string | undefined },
): Promise<string> {
  if (session === undefined) return lookup.resolve(account, parseSandboxRef(sandbox ?? ''))
  const id = await findSandboxOfSession(lookup, session)
  if (sandbox !== undefined && (await lookup.resolve(account, parseSandboxRef(sandbox))) !== id)
    throw noSuchSession()
  return id
}

/** The value of an outcome about a session. A session of another account is reported like one that does not exist. */
export function unwrapSession<T>(outcome: Outcome<T>): T {
  if (!outcome.ok && outcome.code === 'sandbox_not_found') throw noSuchSession()
  return unwrap(outcome)
}
