import { describe, expect, test } from 'bun:test'
import { removeSecrets, validateSecrets, type Secrets } from './secrets.ts'

const LONG = 'x'.repeat(32)
const KEYS = `k1:${Buffer.alloc(32).toString('base64')}`

function validate(env: Record<string, string>): { readonly secrets: Secrets; readonly problems: string[] } {
  const problems: string[] = []
  const readFile = (file: string): string => {
    if (file === '/secret') return `${LONG}\n`
    throw new Error('other users can read it; run chmod 600')
  }
  return { secrets: validateSecrets(env, readFile, problems), problems }
}

describe('validateSecrets', () => {
  test('are optional, from a variable or a file', () => {
    expect(validate({})).toEqual({ secrets: {}, problems: [] })
    expect(validate({ JWT_SECRET: LONG, API_TOKEN_FILE: '/secret', SESSION_TOKEN_SECRET: KEYS })).toEqual({
      secrets: { jwtSecret: LONG, apiToken: LONG, sessionTokenSecret: KEYS },
      problems: [],
    })
  })

  test.each<Record<string, string>>([
    { JWT_SECRET: 'short' },
    { JWT_SECRET: 'x'.repeat(31) },
    { JWT_SECRET: 'x'.repeat(10_000) },
    { API_TOKEN: 'x'.repeat(31) },
    { API_TOKEN: `${LONG} ${LONG}` },
    { API_TOKEN: `${LONG}.${LONG}.${LONG}` },
    { API_TOKEN: `swl_${LONG}` },
    { SESSION_TOKEN_SECRET: LONG },
    { SESSION_TOKEN_SECRET: 'k1:c2hvcnQ=' },
    { JWT_SECRET: LONG, JWT_SECRET_FILE: '/secret' },
    { JWT_SECRET_FILE: '/open' },
  ])('refuses %j', (env) => {
    expect(validate(env).problems).toHaveLength(1)
  })

  test('are removed from the environment of child processes', () => {
    const env = { JWT_SECRET: 'a', API_TOKEN: 'b', SESSION_TOKEN_SECRET: 'c', PATH: '/bin' }
    removeSecrets(env)
    expect(env).toEqual({ PATH: '/bin' } as typeof env)
  })

  test('describes a problem without revealing the secret (threat T2)', () => {
    const canary = 'CNRY0123456789abcdef'
    for (const variable of ['JWT_SECRET', 'API_TOKEN', 'SESSION_TOKEN_SECRET']) {
      const { problems } = validate({ [variable]: canary })
      expect(problems).toHaveLength(1)
      expect(problems.join()).not.toContain(canary)
    }
  })
})
