import { describe, expect, test } from 'bun:test'
import { parsePtyQuery } from '../src/routes/pty-query.ts'

const SESSION = `${'a'.repeat(32)}.${'0'.repeat(26)}`
const UUID = 'f47ac10b-58cc-4372-a567-0e02b2c3d479'
const parse = (query: string) => parsePtyQuery(new URLSearchParams(query))

describe('the query of a terminal', () => {
  test('means the shell in the usual sandbox when it says nothing', () => {
    const nothing = { provider: 'shell', sandbox: undefined, which: 'either' } as const
    expect(parse('')).toEqual(nothing)
    expect(parse('session_id=&provider=&resume=&sandbox=')).toEqual(nothing)
  })

  test('tells names of ours from those that clients make up', () => {
    expect(parse(`session_id=${UUID}`)).toMatchObject({ alias: UUID })
    expect(parse(`session_id=${SESSION}`)).toMatchObject({ session: SESSION })
    expect(parse('session_id=swt1.k1.x')).toMatchObject({ session: 'swt1.k1.x' })
  })

  test('asks for what is there, for something new, or for either; new wins', () => {
    expect(parse('resume=1').which).toBe('resume')
    expect(parse('resume=true').which).toBe('resume')
    expect(parse('resume=0&force_new=false').which).toBe('either')
    expect(parse('resume=1&force_new=true').which).toBe('new')
  })

  test('for something new keeps the name that the client made up, and forgets ours', () => {
    expect(parse(`force_new=1&session_id=${UUID}`)).toMatchObject({ which: 'new', alias: UUID })
    expect(parse(`force_new=1&session_id=${SESSION}`)).not.toHaveProperty('session')
  })

  test.each([
    'cmd=id',
    'session_id=a&session_id=b',
    'resume=2',
    'sandbox=No!',
    'session_id=a%00b',
    'session_id=a.b',
  ])('is refused by name: %s', (query) => {
    expect(() => parse(query)).toThrow(/^Cannot use /)
  })

  test('says nothing back that a terminal would obey (threat T24)', () => {
    expect(() => parse('%1b%5d0;x%07=1')).toThrow('Cannot use parameter "]0;x": unknown')
  })
})
