import { expect, test } from 'bun:test'
import { checkSubprotocols, dialectOf } from './dialect.ts'

test.each([
  [null, 'plain'],
  ['', 'plain'],
  [', ,', 'plain'],
  ['sandwire.v1', 'v1'],
  ['chat, sandwire.v1', 'v1'],
  ['sandwire.v9,sandwire.v1', 'v1'],
] as const)('[V3] the offer %j is the dialect %s', (header, dialect) => {
  checkSubprotocols(header)
  expect(dialectOf(header)).toBe(dialect)
})

test.each([
  'sandwire.ticket.SECRET',
  'chat, sandwire.ticket.SECRET',
  ' sandwire.ticket.SECRET,chat',
  'Sandwire.Ticket.SECRET',
])('(threat T2) nothing of the ticket in the offer %j is said back', (header) => {
  let told = ''
  try {
    checkSubprotocols(header)
  } catch (error) {
    told = String(error)
  }
  expect(told).toContain('Cannot speak')
  expect(told).not.toContain('SECRET')
})

test.each([
  ['sandwire.v9', '"sandwire.v9"'],
  ['chat, superchat', '"chat"'],
  ['SANDWIRE.V1', '"SANDWIRE.V1"'],
  [`\x1b[31m${'x'.repeat(100)}`, `"[31m${'x'.repeat(36)}"`],
])('[V3] the offer %j is refused by name', (header, name) => {
  expect(() => checkSubprotocols(header)).toThrow(
    expect.objectContaining({ code: 'version_unsupported', message: expect.stringContaining(name) }),
  )
})
