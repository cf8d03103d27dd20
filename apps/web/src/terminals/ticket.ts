import { isErrorCode, SandwireError } from '@sandwire/protocol'
import type { TicketRequest } from '@sandwire/react'
import { ApiError, requestJson } from '../api/request.ts'
import { createSandbox } from '../api/sandboxes.ts'
import { isSandboxId } from '../state/sandbox-names.ts'

function hasCode(caught: unknown, code: string): boolean {
  return caught instanceof ApiError && caught.code === code
}

/** Creates a sandbox; an existing one is fine. */
async function ensureSandbox(name: string): Promise<void> {
  try {
    await createSandbox({ name, start: false })
  } catch (caught) {
    if (!hasCode(caught, 'name_taken')) throw caught
  }
}

/** Turns an API error into a protocol error, whose code says whether to retry. */
function toProtocolError(caught: unknown): unknown {
  if (!(caught instanceof ApiError) || !isErrorCode(caught.code)) return caught
  return new SandwireError(caught.code, caught.message, { cause: caught })
}

async function requestTicket(request: TicketRequest, isKnown: (sandbox: string) => boolean): Promise<string> {
  const { sandbox, session } = request
  // Only names can be created; an id refers to an existing or destroyed sandbox.
  if (session !== undefined || sandbox === undefined || isSandboxId(sandbox)) return getTicket(request)
  if (!isKnown(sandbox)) await ensureSandbox(sandbox)
  try {
    return await getTicket(request)
  } catch (caught) {
    if (!hasCode(caught, 'sandbox_not_found')) throw caught
    await ensureSandbox(sandbox)
    return getTicket(request)
  }
}

/**
 * Gets a ticket for a terminal. As in the CLI, a shell in a sandbox that does not exist creates it. `isKnown` avoids
 * a failing request when the sandbox is known not to exist.
 */
export async function ticketForTerminal(
  request: TicketRequest,
  isKnown: (sandbox: string) => boolean,
): Promise<string> {
  try {
    return await requestTicket(request, isKnown)
  } catch (caught) {
    throw toProtocolError(caught)
  }
}

/** Requests a single-use ticket, which is kept only in memory and never in a URL. */
async function getTicket(request: TicketRequest): Promise<string> {
  return (await requestJson<{ ticket: string }>('/api/tickets', { method: 'POST', json: request })).ticket
}
