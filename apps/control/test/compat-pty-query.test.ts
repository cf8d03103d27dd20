import { describe, expect, test } from 'bun:test'
import { parsePtyQuery } from '../src/compat/pty-query.ts'
import { withPing } from '../src/session-settings.ts'

const SESSION = `${'a'.repeat(32)}.${'0'.repeat(26)}`
const UUID = 'f47ac10b-58cc-4372-a567-0e02b2c3d479'
const parse = (query: string) => parsePtyQuery(new URLSearchParams(query))

describe('the query of /ws/pty', () => {
  test('selects the shell in the default sandbox when empty', () => {
    const nothing = { provider: 'shell', sandbox: undefined, select: 'either' } as const
    expect(parse('')).toEqual(nothing)
    expect(parse('session_id=&provider=&resume=&sandbox=')).toEqual(nothing)
  })

  test('distinguishes session ids and tokens from client aliases', () => {
    expect(parse(`session_id=${UUID}`)).toMatchObject({ alias: UUID })
    expect(parse(`session_id=${SESSION}`)).toMatchObject({ session: SESSION })
    expect(parse('session_id=swt1.k1.x')).toMatchObject({ session: 'swt1.k1.x' })
  })

  test('selects an existing session, a new one or either; force_new wins', () => {
    expect(parse('resume=1').select).toBe('resume')
    expect(parse('resume=true').select).toBe('resume')
    expect(parse('resume=0&force_new=false').select).toBe('either')
    expect(parse('resume=1&force_new=true').select).toBe('new')
  })

  test('keeps an alias and ignores a session id for a new session', () => {
    expect(parse(`force_new=1&session_id=${UUID}`)).toMatchObject({ select: 'new', alias: UUID })
    expect(parse(`force_new=1&session_id=${SESSION}`)).not.toHaveProperty('session')
  })

  test.each([
    'cmd=id',
    'session_id=a&session_id=b',
    'resume=2',
    'sandbox=No!',
    'session_id=a%00b',
    'session_id=a.b',
  ])('is refused with the name of the parameter: %s', (query) => {
    expect(() => parse(query)).toThrow(/^Cannot use /)
  })

  test('is echoed without control characters (threat T24)', () => {
    expect(() => parse('%1b%5d0;x%07=1')).toThrow('Cannot use parameter "]0;x": unknown')
  })
})

test('sandboxd gets the interval of pings where it differs from its own', () => {
  expect(withPing('session=s', 5)).toBe('session=s&ping=5')
  expect(withPing('', 5)).toBe('ping=5')
  for (const same of [30, undefined]) expect(withPing('session=s', same)).toBe('session=s')
})
