import type { TicketWish } from '@sandwire/react'
import { ApiError } from '../api/request.ts'
import { createSandbox } from '../api/sandboxes.ts'
import { getTicket } from '../api/tickets.ts'

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

/**
 * A ticket for a terminal. A shell in a sandbox that does not exist yet makes it, as on the command line. `isKnown` says what is
 * known of a sandbox already, so that nobody is asked for what is not there.
 */
export async function ticketForTerminal(
  wish: TicketWish,
  isKnown: (sandbox: string) => boolean,
): Promise<string> {
  if (wish.session === undefined && wish.sandbox !== undefined && !isKnown(wish.sandbox))
    await ensureSandbox(wish.sandbox)
  try {
    return await getTicket(wish)
  } catch (caught) {
    if (wish.session !== undefined || wish.sandbox === undefined || !hasCode(caught, 'sandbox_not_found'))
      throw caught
    await ensureSandbox(wish.sandbox)
    return getTicket(wish)
  }
}
