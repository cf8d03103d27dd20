import { describe, expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { parseAttachRequest } from '../src/routes/attach-query.ts'

const SESSION = `${'0'.repeat(32)}.${'1'.repeat(26)}`
const NO_LIMITS = { lifetimeSeconds: 0, idleSeconds: 0 }
const parse = (query: string, dialect: 'plain' | 'v1' = 'v1') =>
  parseAttachRequest(new URLSearchParams(query), dialect, NO_LIMITS)

function codeOf(run: () => unknown): string | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    return error instanceof SandwireError ? error.code : 'not ours'
  }
}

describe('parseAttachRequest', () => {
  test('starts a process in a sandbox and passes the parameters of sandboxd on', () => {
    expect(parse('arg=-c&sandbox=dev&mode=pty&cmd=bash&create=0&arg=a%20b%2Bc')).toEqual({
      target: { kind: 'start', sandbox: { by: 'name', name: 'dev' }, mayCreate: false },
      isIdempotent: false,
      query: 'cmd=bash&arg=-c&arg=a+b%2Bc&mode=pty',
    })
  })

  test('has no sandbox by default', () => {
    expect(parse('').target).toEqual({ kind: 'start', sandbox: undefined, mayCreate: true })
  })

  test('joins a session', () => {
    expect(parse(`session=${SESSION}&role=viewer`)).toEqual({
      target: { kind: 'join', session: SESSION },
      isIdempotent: true,
      query: `session=${SESSION}&role=viewer`,
    })
  })

  test('is idempotent with a create id', () => {
    expect(parse(`createId=${'a'.repeat(32)}`).isIdempotent).toBe(true)
  })

  test.each([
    'cmd=',
    'arg=x',
    'cmd=a&cmd=b',
    'cmd=a%00b',
    'cmd=a&arg=b%00',
    'env_PATH=x',
    'token=secret',
    'port=8080',
    'sandbox=',
    'sandbox=A',
    'sandbox=a/../b',
    'sandbox=A%2fb',
    'sandbox=a%00b',
    'sandbox=__proto__',
    'sandbox=..',
    'sandbox=%C3%A9',
    `sandbox=${'a'.repeat(64)}`,
    'create=yes',
    'mode=tty',
    'cols=0',
    'cols=02280',
    'cols=%2B80',
    'cols=%2080',
    'cols=80.0',
    'cols=0x8e8',
    'cols=80%00',
    'cols=８０',
    'cols=1e3',
    'cols=-1',
    'rows=65536',
    'keep=1.5',
    'take=yes',
    'role=admin',
    'role=__proto__',
    'overflow=drop',
    'createId=1',
    'session=abc',
    'session=..',
    `session=${SESSION}&cmd=b`,
    `session=${SESSION}&arg=b`,
    `session=${SESSION}&create=1`,
    `session=${SESSION.replace('0', 'A')}`,
    '__proto__=1',
    'constructor=1',
  ])('(threat T7) refuses %s', (query) => {
    expect(codeOf(() => parse(query))).toBe('bad_request')
  })

  test.each([
    `session=${SESSION}`,
    'role=viewer',
    'keep=5',
    'take=1',
    'overflow=trim',
    `createId=${'a'.repeat(32)}`,
  ])('refuses %s from a plain client', (query) => {
    expect(codeOf(() => parse(query, 'plain'))).toBe('needs_v1')
  })

  test('refuses a query that is too long for sandboxd', () => {
    expect(codeOf(() => parse(`cmd=a&arg=${'x'.repeat(14_000)}`))).toBeUndefined()
    expect(codeOf(() => parse(`cmd=a&arg=${'x'.repeat(15_000)}`))).toBe('frame_too_large')
  })

  test('does not echo a refused value', () => {
    for (const query of ['token=CANARY', 'mode=CANARY', 'sandbox=CANARY'])
      expect(() => parse(query)).toThrow(
        expect.not.objectContaining({ message: expect.stringContaining('CANARY') }),
      )
  })
})

test("applies the operator's timeouts to new sessions of both dialects, not to joins", () => {
  const limited = (query: string, dialect: 'plain' | 'v1' = 'v1'): string =>
    parseAttachRequest(new URLSearchParams(query), dialect, { lifetimeSeconds: 100, idleSeconds: 0 }).query
  expect(limited('cmd=cat')).toBe('cmd=cat&lifetime=100')
  expect(limited('cmd=cat', 'plain')).toBe('cmd=cat&lifetime=100')
  expect(limited('cmd=cat&lifetime=50&idle=7')).toBe('cmd=cat&lifetime=50&idle=7')
  expect(limited('cmd=cat&lifetime=500')).toBe('cmd=cat&lifetime=100')
  expect(limited(`session=${SESSION}`)).toBe(`session=${SESSION}`)
})
