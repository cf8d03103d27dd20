import { isErrorCode, SandwireError } from '@sandwire/protocol'
import type { TicketRequest } from '@sandwire/react'
import { ApiError, requestJson } from '../api/request.ts'
import { createSandbox } from '../api/sandboxes.ts'
import { isSandboxId } from '../state/sandbox-names.ts'

function hasCode(caught: unknown, code: string): boolean {
  return caught instanceof ApiError && caught.code === code
}

/** Makes a sandbox under a name, unless somebody was faster. */
async function ensureSandbox(name: string): Promise<void> {
  try {
    await createSandbox({ name, start: false })
  } catch (caught) {
    if (!hasCode(caught, 'name_taken')) throw caught
  }
}

/** What the server refused, by the code that says whether it is worth trying again. */
function refusalOf(caught: unknown): unknown {
  if (!(caught instanceof ApiError) || !isErrorCode(caught.code)) return caught
  return new SandwireError(caught.code, caught.message, { cause: caught })
}

async function askForTicket(wish: TicketRequest, isKnown: (sandbox: string) => boolean): Promise<string> {
  const { sandbox, session } = wish
  // Only what has a name can be made: an id is there, or was.
  if (session !== undefined || sandbox === undefined || isSandboxId(sandbox)) return getTicket(wish)
  if (!isKnown(sandbox)) await ensureSandbox(sandbox)
  try {
    return await getTicket(wish)
  } catch (caught) {
    if (!hasCode(caught, 'sandbox_not_found')) throw caught
    await ensureSandbox(sandbox)
    return getTicket(wish)
  }
}

/**
 * A ticket for a terminal. A shell in a sandbox that does not exist yet makes it, as on the command line. `isKnown` says what is
 * known of a sandbox already, so that nobody is asked for what is not there.
 */
export async function ticketForTerminal(
  wish: TicketRequest,
  isKnown: (sandbox: string) => boolean,
): Promise<string> {
  try {
    return await askForTicket(wish, isKnown)
  } catch (caught) {
    throw refusalOf(caught)
  }
}

/** A credential for one socket. It lives in memory, for seconds, and never in an address. */
async function getTicket(wish: TicketRequest): Promise<string> {
  return (await requestJson<{ ticket: string }>('/api/tickets', { method: 'POST', json: wish })).ticket
}
