import { expect, test } from 'bun:test'
import { LOGIN_LIFE_MS, type LoginState, openLoginStates } from '../src/auth/login-state.ts'

const NOW = 1_000_000
const STATE: LoginState = {
  state: 's'.repeat(43),
  nonce: 'n'.repeat(43),
  verifier: 'v'.repeat(43),
  issuer: 'test',
  issuerBinding: 'v',
  redirectUri: 'http://localhost:1/signin/callback/test',
  to: '/',
  expiresMs: NOW + LOGIN_LIFE_MS,
}

const secret = (byte: number): Uint8Array<ArrayBuffer> => new Uint8Array(32).fill(byte)
const states = await openLoginStates(secret(1))

/** Headers of a browser that has the cookie. */
function sending(cookie: string): Headers {
  return new Headers({ cookie })
}

async function sealed(): Promise<string> {
  return (await states.seal(STATE)).split(';')[0] ?? ''
}

test('a login state survives the round trip', async () => {
  expect(await states.open(sending(`a=b; ${await sealed()}; c=d`), NOW)).toEqual(STATE)
})

test('the login cookie is bound to the host, short-lived and hidden from scripts', async () => {
  expect(await states.seal(STATE)).toMatch(
    /^__Host-sandwire-login=[\w-]+; Path=\/; HttpOnly; Secure; SameSite=Lax; Max-Age=600$/,
  )
})

test('a login state is encrypted', async () => {
  const value = (await sealed()).split('=')[1] ?? ''
  expect(Buffer.from(value, 'base64url').toString('latin1')).not.toContain('vvvv')
  expect(await sealed()).not.toBe(await sealed())
})

test('a modified login state is refused', async () => {
  const cookie = await sealed()
  const name = '__Host-sandwire-login='
  const bytes = Buffer.from(cookie.slice(name.length), 'base64url')
  for (let at = 0; at < bytes.length; at += 7) {
    const bent = Buffer.from(bytes)
    bent[at] = (bent[at] ?? 0) ^ 1
    expect(await states.open(sending(name + bent.toString('base64url')), NOW)).toBeUndefined()
  }
  for (const bent of ['', 'x', '%%%', 'A'.repeat(4_000), bytes.subarray(0, 12).toString('base64url')])
    expect(await states.open(sending(name + bent), NOW)).toBeUndefined()
})

test('a login state of another server, or sent twice, is refused', async () => {
  const cookie = await sealed()
  const others = await openLoginStates(secret(2))
  expect(await others.open(sending(cookie), NOW)).toBeUndefined()
  expect(await states.open(sending(`${cookie}; ${cookie}`), NOW)).toBeUndefined()
  expect(await states.open(new Headers(), NOW)).toBeUndefined()
})

test('a login state expires', async () => {
  const headers = sending(await sealed())
  expect(await states.open(headers, STATE.expiresMs - 1)).toEqual(STATE)
  expect(await states.open(headers, STATE.expiresMs)).toBeUndefined()
})
