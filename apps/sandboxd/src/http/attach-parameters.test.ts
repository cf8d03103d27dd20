import { describe, expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { checkSessionId, parseAttach } from './attach-parameters.ts'

const parse = (query: string, dialect: 'plain' | 'v1' = 'v1') =>
  parseAttach(new URLSearchParams(query), dialect)

function codeOf(run: () => unknown): string | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    return error instanceof SandwireError ? error.code : 'not ours'
  }
}

describe('parseAttach', () => {
  test('reads a command with its arguments in order', () => {
    expect(parse('cmd=bash&arg=-lc&arg=echo%20hi')).toMatchObject({
      kind: 'create',
      create: { argv: ['bash', '-lc', 'echo hi'], mode: 'pipe', overflow: 'block', keepSeconds: 60 },
      rights: { role: undefined, take: false, cols: 80, rows: 24 },
    })
  })

  test('starts the shell without a command', () => {
    expect(parse('')).toMatchObject({ kind: 'create', create: { argv: [] } })
  })

  test('lets terminals trim, and ends plain sessions with their socket', () => {
    expect(parse('mode=pty')).toMatchObject({ create: { overflow: 'trim' } })
    expect(parse('cmd=cat', 'plain')).toMatchObject({ create: { keepSeconds: 0 } })
  })

  test('joins a session with a role', () => {
    expect(parse('session=abc&role=viewer&take=1')).toEqual({
      kind: 'join',
      session: 'abc',
      rights: { role: 'viewer', take: true, cols: 80, rows: 24 },
    })
  })

  test.each([
    'session=a',
    'role=viewer',
    'keep=5',
    'createId=00112233445566778899aabbccddeeff',
    'take=1',
    'overflow=trim',
  ])('refuses %s from a plain client', (query) => {
    expect(codeOf(() => parse(query, 'plain'))).toBe('needs_v1')
  })

  test.each([
    'mode=tty',
    'cmd=',
    'arg=x',
    'cmd=a&cmd=b',
    'cmd=a&env_PATH=x',
    'token=secret',
    'cols=0',
    'cols=4097',
    'cols=080',
    'cols=%2B80',
    'cols=8e1',
    'rows=-1',
    'rows=２４',
    'keep=604801',
    'keep=1.5',
    'take=yes',
    'role=admin',
    'role=__proto__',
    'overflow=drop',
    'createId=00112233445566778899AABBCCDDEEFF',
    'createId=1',
    'cmd=a%00b',
    'cmd=a&arg=b%00',
    'session=a&cmd=b',
    'session=a&arg=b',
    '__proto__=1',
  ])('refuses %s', (query) => {
    expect(codeOf(() => parse(query))).toBe('bad_request')
  })

  test('does not echo a token from the query', () => {
    try {
      parse('token=CANARY')
    } catch (error) {
      expect(String(error)).not.toContain('CANARY')
    }
  })
})

test.each(['', '..', 'a/b', 'a%2fb', 'a\0b', 'é', '-a', ' a', 'a'.repeat(129)])(
  'checkSessionId refuses %j',
  (id) => {
    expect(codeOf(() => checkSessionId(id))).toBe('session_not_found')
  },
)
