import { describe, expect, test } from 'bun:test'
import { openSessionTokens, type SessionTokens } from '../src/auth/session-token.ts'

const SANDBOX = '0'.repeat(32)
const SESSION = `${SANDBOX}.${'1'.repeat(26)}`
const NOW = 1_800_000_000_000
const LIFE_MS = 60 * 60_000
const BINDING = { session: SESSION, kind: 'pty', user: 'ada' } as const

const key = (kid: string, fill: number) => ({ kid, bytes: new Uint8Array(32).fill(fill) })
const random = (bytes: Uint8Array<ArrayBuffer>): void => void crypto.getRandomValues(bytes)
const open = (...kids: readonly (readonly [string, number])[]): Promise<SessionTokens> => {
  const [first = key('a', 1), ...rest] = kids.map(([kid, fill]) => key(kid, fill))
  return openSessionTokens([first, ...rest], { provider: 'host', lifeMs: LIFE_MS, random })
}

describe('a session token', () => {
  test('resolves to its session for its user until it expires', async () => {
    const tokens = await open()
    const token = await tokens.mint(BINDING, NOW)
    for (const atMs of [NOW, NOW + LIFE_MS - 1]) expect(await tokens.read(token, 'ada', atMs)).toBe(SESSION)
    for (const atMs of [NOW + LIFE_MS, NOW + 10 * LIFE_MS])
      expect(await tokens.read(token, 'ada', atMs)).toBeUndefined()
  })

  test('is invalid for another account', async () => {
    const tokens = await open()
    const token = await tokens.mint(BINDING, NOW)
    for (const user of ['bob', 'Ada', 'ada ', '']) expect(await tokens.read(token, user, NOW)).toBeUndefined()
  })

  test('is invalid where sessions of its kind cannot be used', async () => {
    const tokens = await open()
    const mint = (kind: 'pty' | 'claude') => tokens.mint({ ...BINDING, kind }, NOW)
    const [pty, claude] = [await mint('pty'), await mint('claude')]
    expect(await tokens.read(pty, 'ada', NOW, ['claude'])).toBeUndefined()
    expect(await tokens.read(claude, 'ada', NOW, ['pipe', 'pty'])).toBeUndefined()
    expect(await tokens.read(pty, 'ada', NOW, ['pipe', 'pty'])).toBe(SESSION)
    expect(await tokens.read(claude, 'ada', NOW, ['claude'])).toBe(SESSION)
  })

  test('is encrypted, and differs each time', async () => {
    const tokens = await open()
    // Long values only: a short one could occur by chance.
    const binding = { ...BINDING, user: 'account-with-a-long-name' }
    const minted = await Promise.all(Array.from({ length: 20 }, () => tokens.mint(binding, NOW)))
    expect(new Set(minted).size).toBe(20)
    for (const token of minted) {
      const sealed = Buffer.from(token.split('.')[2] ?? '', 'base64url').toString('latin1')
      for (const secret of [binding.user, SESSION, SANDBOX, '"session"', '"workspace"'])
        expect([token.includes(secret), sealed.includes(secret)]).toEqual([false, false])
    }
  })

  test('is invalid when any character was changed', async () => {
    const tokens = await open()
    const token = await tokens.mint(BINDING, NOW)
    for (let at = 0; at < token.length; at += 1) {
      for (const other of ['A', 'B', 'a', '.', '=', ' ']) {
        if (other === token[at]) continue
        const changed = token.slice(0, at) + other + token.slice(at + 1)
        expect([at, await tokens.read(changed, 'ada', NOW)]).toEqual([at, undefined])
      }
    }
  })

  test('has one spelling, whatever its length', async () => {
    const tokens = await open()
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    for (const user of ['a', 'ab', 'abc']) {
      const token = await tokens.mint({ ...BINDING, user }, NOW)
      const readable = await Promise.all(
        Array.from(letters).map((last) => tokens.read(token.slice(0, -1) + last, user, NOW)),
      )
      expect(readable.filter((session) => session !== undefined)).toEqual([SESSION])
    }
  })

  test('is invalid when truncated, extended or spliced', async () => {
    const tokens = await open()
    const token = await tokens.mint(BINDING, NOW)
    const [kind, kid, body = ''] = token.split('.')
    const [, , other = ''] = (await tokens.mint({ ...BINDING, user: 'bob' }, NOW)).split('.')
    for (const text of [
      '',
      'swt1.',
      'swt1..',
      `${kind}.${kid}`,
      `${kind}.${kid}.`,
      `${kind}.${kid}.AAAA`,
      `${token}.`,
      `${token}A`,
      `${token}=`,
      token.slice(0, -1),
      `${kind}.${kid}.${body.slice(0, 16)}${other.slice(16)}`,
      `swt2.${kid}.${body}`,
      `${kind}.__proto__.${body}`,
      `${token}${'A'.repeat(4096)}`,
    ])
      expect([text, await tokens.read(text, 'ada', NOW)]).toEqual([text, undefined])
  })

  test('is decrypted with every listed key and encrypted with the first', async () => {
    const old = await open(['old', 1])
    const both = await open(['new', 2], ['old', 1])
    const fresh = await open(['new', 2])
    const token = await old.mint(BINDING, NOW)
    expect(await both.read(token, 'ada', NOW)).toBe(SESSION)
    expect(await fresh.read(token, 'ada', NOW)).toBeUndefined()
    expect(await both.mint(BINDING, NOW)).toStartWith('swt1.new.')
  })

  test('is bound to the id of its key, even for the same key', async () => {
    const token = await (await open(['one', 1])).mint(BINDING, NOW)
    const moved = token.replace('swt1.one.', 'swt1.two.')
    expect(await (await open(['two', 1])).read(moved, 'ada', NOW)).toBeUndefined()
    expect(await (await open(['two', 2], ['one', 1])).read(moved, 'ada', NOW)).toBeUndefined()
  })

  test('does not live longer than this server allows, whatever expiry it has', async () => {
    const [first] = [key('a', 1)]
    const long = await openSessionTokens([first], { provider: 'host', lifeMs: LIFE_MS * 24, random })
    const token = await long.mint(BINDING, NOW)
    expect(await (await open()).read(token, 'ada', NOW)).toBeUndefined()
  })

  test('is invalid on a server with another provider', async () => {
    const other = await openSessionTokens([key('a', 1)], { provider: 'sprites', lifeMs: LIFE_MS, random })
    const token = await other.mint(BINDING, NOW)
    expect(await other.read(token, 'ada', NOW)).toBe(SESSION)
    expect(await (await open()).read(token, 'ada', NOW)).toBeUndefined()
  })

  test('is refused when its session id contains no sandbox', async () => {
    const tokens = await open()
    // Only an id with a sandbox can be routed.
    const token = await tokens.mint({ ...BINDING, session: 'nowhere' }, NOW)
    expect(await tokens.read(token, 'ada', NOW)).toBeUndefined()
  })
})
