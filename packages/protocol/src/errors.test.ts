import { describe, expect, test } from 'bun:test'
import { decodePlainServer, decodeServer, encode } from './codec.ts'
import { type ErrorCode, ERRORS, isErrorCode, SandwireError } from './errors.ts'

const CODES = Object.keys(ERRORS).filter(isErrorCode)
/** Close codes of RFC 6455 and the IANA registry that a server may send. */
const SENDABLE = new Set([1000, 1001, 1008, 1009, 1011, 1012, 1013])

describe.each(CODES)('%s', (code: ErrorCode) => {
  const row = ERRORS[code]

  test('[E2] has a close code that a server may send, except the one only a client detects', () => {
    const isOwn = row.close >= 4000 && row.close <= 4999
    if (code === 'link_lost') expect(row.close).toBe(1006)
    else expect(isOwn || SENDABLE.has(row.close)).toBe(true)
  })

  test('[E2] has an HTTP error status and a valid exit code', () => {
    expect(row.status).toBeGreaterThanOrEqual(400)
    expect(row.status).toBeLessThan(600)
    expect(row.exit).toBeGreaterThan(0)
    expect(row.exit).toBeLessThanOrEqual(255)
  })

  test('[E2] can be sent in both dialects', () => {
    expect(decodeServer(encode({ type: 'error', code, message: 'x', fatal: true }))).toBeDefined()
    expect(decodePlainServer(encode({ type: 'error', code, message: 'x' }))).toBeDefined()
  })

  test('[E2] fits into a close reason', () => {
    expect(new TextEncoder().encode(code).byteLength).toBeLessThanOrEqual(123)
  })
})

test('[E2] errors that share a close code are equally retryable', () => {
  const retryable = new Map<number, boolean>()
  for (const row of Object.values(ERRORS)) {
    expect(retryable.get(row.close) ?? row.retryable).toBe(row.retryable)
    retryable.set(row.close, row.retryable)
  }
})

test('[E2] client errors are not retryable, transient errors are', () => {
  for (const code of [
    'bad_request',
    'unauthorized',
    'forbidden',
    'conflict',
    'session_gone',
    'replaced',
    'desync',
  ] as const) {
    expect(ERRORS[code].retryable).toBe(false)
  }
  for (const code of ['link_lost', 'shutting_down', 'silent', 'hello_timeout', 'rate_limited'] as const) {
    expect(ERRORS[code].retryable).toBe(true)
  }
})

describe('isErrorCode', () => {
  test.each(['', 'nope', 'constructor', '__proto__', 'toString', 'BAD_FRAME'])(
    '[E3] does not know %j',
    (text) => {
      expect(isErrorCode(text)).toBe(false)
    },
  )
})

describe('SandwireError', () => {
  test('has a code, its definition and a cause that is not in its text', () => {
    const error = new SandwireError('conflict', 'Cannot create', { cause: new Error('secret') })
    expect(error.info).toBe(ERRORS.conflict)
    expect(String(error)).toBe('SandwireError: Cannot create')
    expect(error).toBeInstanceOf(Error)
  })

  test('from returns a SandwireError unchanged and hides other errors', () => {
    const own = new SandwireError('forbidden', 'No')
    expect(SandwireError.from(own)).toBe(own)
    const other = SandwireError.from(new TypeError('secret'))
    expect(other.code).toBe('internal')
    expect(other.message).not.toContain('secret')
    expect(SandwireError.from(undefined).code).toBe('internal')
  })
})
