import type { TicketWish } from '@sandwire/react'
import { requestJson } from './request.ts'

/** A credential for one socket. It lives in memory, for seconds, and never in an address. */
export async function getTicket(wish: TicketWish): Promise<string> {
  return (await requestJson<{ ticket: string }>('/api/tickets', { method: 'POST', json: wish })).ticket
}
