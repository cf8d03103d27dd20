import { sandboxIdOf } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { type Outcome, unwrap } from '../outcome.ts'
import type { Directory } from '../sandbox/directory.ts'
import { noSuchSession } from '../sandbox/not-found.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'

/** Which sandbox a request is about that names it, or a session of it, or both. */
export async function placeOf(
  directory: Directory,
  account: string,
  { sandbox, session }: { readonly sandbox: string | undefined; readonly session: string | undefined },
): Promise<string> {
  if (session === undefined) return directory.resolve(account, parseSandboxRef(sandbox ?? ''))
  if (sandboxIdOf(session) === undefined)
    throw new SandwireError('bad_request', 'Cannot use the session id: it is not spelled like one')
  const id = await directory.ofSession(session)
  if (sandbox !== undefined && (await directory.resolve(account, parseSandboxRef(sandbox))) !== id)
    throw noSuchSession()
  return id
}

/** The answer about a session; not yours and not there look the same. */
export function unwrapPlace<T>(outcome: Outcome<T>): T {
  if (!outcome.ok && outcome.code === 'sandbox_not_found') throw noSuchSession()
  return unwrap(outcome)
}
