import { describe, expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { ticketProtocol, type TicketRequest } from './ticket-protocol.ts'

describe('ticketProtocol', () => {
  test('requests a ticket for the target, and for the session once it is known', async () => {
    const asked: TicketRequest[] = []
    const get = (request: TicketRequest) => {
      asked.push(request)
      return Promise.resolve('a.b')
    }
    expect(await ticketProtocol(get, { sandbox: 'dev', cmd: 'sh' }, undefined)).toBe('sandwire.ticket.a.b')
    await ticketProtocol(get, { sandbox: 'dev', role: 'viewer' }, 's')
    expect(asked).toEqual([{ sandbox: 'dev' }, { sandbox: 'dev', session: 's', role: 'viewer' }])
  })

  test('reports in one printable line why there is no ticket, and allows a retry', async () => {
    const failing = () => Promise.reject(new Error('the shop is\x1b[2J closed'))
    const error = await ticketProtocol(failing, {}, undefined).catch((caught: unknown) => caught)
    expect(error).toMatchObject({
      code: 'link_lost',
      message: expect.stringContaining('Cannot get a ticket: the shop'),
    })
    expect(String(error)).not.toContain('\x1b')
    expect(SandwireError.from(error).info.retryable).toBe(true)
  })

  test.each(['', 'a b', '{"ticket":"x"}', 'a,b'])('rejects %j', async (ticket) => {
    const error = await ticketProtocol(() => Promise.resolve(ticket), {}, undefined).catch(
      (caught: unknown) => caught,
    )
    expect(error).toMatchObject({
      code: 'bad_request',
      message: 'Cannot use the ticket: getTicket must return a string',
    })
  })
})
