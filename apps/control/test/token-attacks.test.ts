import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openRawTcp } from '@sandwire/testing'
import { type RunningControl, startControl } from './support/control.ts'
import { FakeIssuer, makeKey, signEncoded, signText, type SigningKey } from './support/fake-issuer.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { fieldOf } from './support/json.ts'

let sandboxes: FakeSandboxes
let control: RunningControl
let issuer: FakeIssuer
let key: SigningKey
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  key = await makeKey('one')
  issuer = new FakeIssuer([key])
  control = await startControl({
    runner: sandboxes,
    config: { issuers: [issuer.config()] },
    bindings: { JWT_SECRET: 's'.repeat(32) },
  })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

const encode = (text: string): string =>
  new TextEncoder().encode(text).toBase64({ alphabet: 'base64url', omitPadding: true })
const now = (): number => Math.floor(Date.now() / 1000)
const claimsText = (changes: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify(issuer.claims(changes))
const HEADER = '{"alg":"RS256","kid":"one","typ":"at+jwt"}'

/** Status, code and message of the response. */
async function show(token: string): Promise<{ outcome: string; message: string }> {
  const response = await control.fetch('/api/whoami', { headers: { authorization: `Bearer ${token}` } })
  const body = Object(await response.json()) as { error?: { code: string; message: string } }
  return {
    outcome: `${response.status} ${body.error?.code ?? 'in'}`,
    message: body.error?.message ?? '',
  }
}

async function sha256Mac(secret: string | Uint8Array<ArrayBuffer>, input: string): Promise<string> {
  const bytes = typeof secret === 'string' ? new TextEncoder().encode(secret) : secret
  const hmac = { name: 'HMAC', hash: 'SHA-256' }
  const imported = await crypto.subtle.importKey('raw', bytes, hmac, false, ['sign'])
  const mac = await crypto.subtle.sign('HMAC', imported, new TextEncoder().encode(input))
  return `${input}.${new Uint8Array(mac).toBase64({ alphabet: 'base64url', omitPadding: true })}`
}

describe('a token (threat T34)', () => {
  test('of the issuer is accepted (control for the tests below)', async () => {
    expect(await show(await issuer.token())).toMatchObject({ outcome: '200 in' })
    expect(await show(await signText(HEADER, claimsText(), key))).toMatchObject({ outcome: '200 in' })
  })

  test.each(['none', 'None', 'nOnE', 'NONE', '', 'RS257', 'rs256'])(
    'of algorithm "%s" is refused',
    async (alg) => {
      const header = encode(JSON.stringify({ alg, kid: 'one', typ: 'at+jwt' }))
      const good = (await issuer.token()).split('.')[2] ?? ''
      for (const signature of ['', 'AA', good])
        expect(await show(`${header}.${encode(claimsText())}.${signature}`)).toMatchObject({
          outcome: '401 unauthorized',
        })
      // A valid signature under another alg.
      const claims = claimsText()
      expect(await show(await signText(JSON.stringify({ alg, kid: 'one' }), claims, key))).toMatchObject({
        outcome: '401 unauthorized',
      })
    },
  )

  test('of another algorithm that its key supports is refused', async () => {
    const { privateKey } = key
    const pkcs8 = await crypto.subtle.exportKey('pkcs8', privateKey)
    const pss = { name: 'RSA-PSS', hash: 'SHA-256' }
    const other = await crypto.subtle.importKey('pkcs8', pkcs8, pss, false, ['sign'])
    const input = `${encode('{"alg":"PS256","kid":"one","typ":"at+jwt"}')}.${encode(claimsText())}`
    const signature = await crypto.subtle.sign(
      { name: 'RSA-PSS', saltLength: 32 },
      other,
      new TextEncoder().encode(input),
    )
    const text = new Uint8Array(signature).toBase64({ alphabet: 'base64url', omitPadding: true })
    expect(await show(`${input}.${text}`)).toMatchObject({ outcome: '401 unauthorized' })
  })

  test('signed with the public key as HMAC secret is refused', async () => {
    const publicKey = await crypto.subtle.importKey(
      'jwk',
      { ...key.publicJwk, ext: true } as JsonWebKey,
      { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
      true,
      ['verify'],
    )
    const spki = new Uint8Array(await crypto.subtle.exportKey('spki', publicKey))
    const pem = `-----BEGIN PUBLIC KEY-----\n${spki.toBase64().replaceAll(/(.{64})/g, '$1\n')}\n-----END PUBLIC KEY-----\n`
    const input = `${encode('{"alg":"HS256","kid":"one","typ":"at+jwt"}')}.${encode(claimsText())}`
    for (const secret of [spki, pem, pem.trim(), JSON.stringify(key.publicJwk), key.publicJwk.n ?? ''])
      expect(await show(await sha256Mac(secret, input))).toMatchObject({ outcome: '401 unauthorized' })
  })

  test('naming the issuer but signed with the service secret is another account', async () => {
    const input = `${encode('{"alg":"HS256"}')}.${encode(claimsText({ aud: undefined }))}`
    const service = await sha256Mac('s'.repeat(32), input)
    const account = async (token: string): Promise<unknown> => {
      const response = await control.fetch('/api/whoami', { headers: { authorization: `Bearer ${token}` } })
      expect(response.status).toBe(200)
      return fieldOf(await response.json(), 'account')
    }
    expect(await account(service)).not.toBe(await account(await issuer.token()))
  })

  test.each([
    ['no aud', { aud: undefined }],
    ['an empty aud', { aud: '' }],
    ['an empty list for aud', { aud: [] }],
    ['another aud', { aud: 'another' }],
    ['others for aud', { aud: ['a', 'b'] }],
    ['a list in a list for aud', { aud: [['sandwire']] }],
    ['ours and a number for aud', { aud: ['sandwire', 7] }],
    ['an object for aud', { aud: { sandwire: true } }],
    ['aud in other letters', { aud: 'Sandwire' }],
    ['no exp', { exp: undefined }],
    ['exp as text', { exp: String(now() + 300) }],
    ['exp as a fraction', { exp: now() + 300.5 }],
    ['a negative exp', { exp: -1 }],
    ['exp zero', { exp: 0 }],
    ['exp null', { exp: null }],
    ['exp in a list', { exp: [now() + 300] }],
    ['exp beyond all dates', { exp: 2 ** 53 - 1 }],
    ['exp in the past', { exp: now() - 61 }],
    ['nbf in the future', { nbf: now() + 120 }],
    ['nbf as text', { nbf: '0' }],
    ['iat in the future', { iat: now() + 120 }],
    ['no sub', { sub: undefined }],
    ['an empty sub', { sub: '' }],
    ['a number for sub', { sub: 7 }],
    ['a list for sub', { sub: ['ada'] }],
    ['a very long sub', { sub: 'a'.repeat(256) }],
    ['no iss', { iss: undefined }],
    ['an unknown iss', { iss: 'https://id.example' }],
    ['a list for iss', { iss: ['http://127.0.0.1'] }],
    ['a scope that is no text', { scope: 7 }],
    ['a list of scopes with a number', { permissions: ['sandbox:connect', 7] }],
    ['a key that it is bound to', { cnf: { jkt: 'x' } }],
  ])('with %s is refused', async (_, claims) => {
    expect(await show(await issuer.token(claims))).toMatchObject({ outcome: '401 unauthorized' })
  })

  test.each(['1e308', '1e999', '-0', '-1e308', 'NaN', 'Infinity', '0x7fffffff', '"4e9"', 'true'])(
    'with the exp %s is refused',
    async (exp) => {
      const claims = claimsText({ exp: 4 }).replace('"exp":4', `"exp":${exp}`)
      expect(await show(await signText(HEADER, claims, key))).toMatchObject({ outcome: '401 unauthorized' })
    },
  )

  test('with duplicate claims or headers is refused', async () => {
    const twice = claimsText().replace('"sub":"ada"', '"sub":"eve","sub":"ada"')
    expect(await show(await signText(HEADER, twice, key))).toMatchObject({ outcome: '401 unauthorized' })
    const escaped = claimsText().replace('"sub":"ada"', '"s\\u0075b":"eve","sub":"ada"')
    expect(await show(await signText(HEADER, escaped, key))).toMatchObject({ outcome: '401 unauthorized' })
    const header = HEADER.replace('"alg":"RS256"', '"alg":"none","alg":"RS256"')
    expect(await show(await signText(header, claimsText(), key))).toMatchObject({
      outcome: '401 unauthorized',
    })
  })

  test('with an embedded key or key URL is refused, and no URL is fetched', async () => {
    const own = await makeKey('own')
    await using trap = new FakeIssuer([own])
    for (const header of [
      { jku: `${trap.url}/keys`, kid: 'own' },
      { x5u: `${trap.url}/keys`, kid: 'own' },
      { jwk: own.publicJwk, kid: 'own' },
      { jwk: own.publicJwk },
      { x5c: ['MIIB'], kid: 'own' },
    ])
      for (const signedBy of [own, key])
        expect(await show(await issuer.token({}, { header, key: signedBy }))).toMatchObject({
          outcome: '401 unauthorized',
        })
    expect(trap.requested).toEqual([])
  })

  test.each([
    { crit: ['exp'] },
    { crit: [] },
    { crit: ['b64'], b64: true },
    { crit: ['b64'], b64: false },
    { b64: false },
    { zip: 'DEF' },
    { kid: '' },
    { kid: ['one'] },
    { kid: null },
    { kid: 7 },
    { kid: undefined },
    { typ: 'logout+jwt' },
    { typ: 'dpop+jwt' },
    { typ: 7 },
  ])('with the header %j is refused', async (header) => {
    expect(await show(await issuer.token({}, { header }))).toMatchObject({ outcome: '401 unauthorized' })
  })

  test.each(['../../dev/null', '/dev/null', "one' OR '1'='1", 'One', '__proto__'])(
    'with the unknown key %j is refused without repeated requests to the issuer',
    async (kid) => {
      const before = issuer.requested.length
      const outcomes: string[] = []
      for (let time = 0; time < 5; time += 1)
        outcomes.push((await show(await issuer.token({}, { header: { kid } }))).outcome)
      // The key may be newer than the cache, so until the next fetch the result is "unavailable".
      for (const outcome of outcomes)
        expect(['401 unauthorized', '503 issuer_unavailable']).toContain(outcome)
      expect(issuer.requested.length - before).toBeLessThanOrEqual(1)
    },
  )

  test('with dots, padding, foreign characters or an extra part is refused', async () => {
    const token = await issuer.token()
    const [header = '', payload = '', signature = ''] = token.split('.')
    const claims = new TextEncoder().encode(claimsText({ name: '??>>' }))
    for (const wrong of [
      `${token}.`,
      `${token}..`,
      `.${token}`,
      `${header}..${payload}.${signature}`,
      `${header}.${payload}`,
      `${header}.${payload}.`,
      `..${signature}`,
      '..',
      '...',
      `${token}=`,
      `${token}==`,
      `${header}=.${payload}.${signature}`,
      `${header}.${payload}.${signature}%20`,
      `${header}.${payload}.${signature}\u00a0`,
      // Signed in this encoding, so that only the encoding is invalid.
      await signEncoded(`${encode(HEADER)}==.${encode(claimsText())}`, key),
      await signEncoded(`${encode(HEADER)}.${claims.toBase64()}`, key),
      await signText(HEADER, `\ufeff${claimsText()}`, key),
      await signText(HEADER, '"ada"', key),
      await signText(HEADER, `[${claimsText()}]`, key),
      await signText(HEADER, 'null', key),
      await signText(`[${HEADER}]`, claimsText(), key),
      `${header.toUpperCase()}.${payload}.${signature}`,
    ])
      expect([wrong.slice(-12), (await show(wrong)).outcome]).toEqual([wrong.slice(-12), '401 unauthorized'])
  })

  test('is refused when any bit was changed', async () => {
    const [header = '', payload = '', signature = ''] = (await issuer.token()).split('.')
    const eve = encode(claimsText({ sub: 'eve' }))
    const turned = signature.startsWith('A') ? `B${signature.slice(1)}` : `A${signature.slice(1)}`
    for (const wrong of [`${header}.${eve}.${signature}`, `${header}.${payload}.${turned}`])
      expect(await show(wrong)).toMatchObject({ outcome: '401 unauthorized' })
  })

  test('of more than 8 KiB is refused, although it is valid', async () => {
    expect(await show(await issuer.token({ x: 'x'.repeat(5_000) }))).toMatchObject({ outcome: '200 in' })
    expect(await show(await issuer.token({ x: 'x'.repeat(8_000) }))).toMatchObject({
      outcome: '401 unauthorized',
      message: 'Cannot authenticate: the token is too long',
    })
  })

  test('of 1 MB fails only its own request', async () => {
    await using tcp = await openRawTcp({ port: control.port })
    const head = `GET /api/whoami HTTP/1.1\r\nHost: localhost:${control.port}\r\nAuthorization: Bearer `
    await tcp.write(`${head}${'a'.repeat(1_000_000)}.b.c\r\n\r\n`).catch(() => undefined)
    const answer = new TextDecoder().decode(await tcp.read().catch(() => new Uint8Array()))
    expect(answer).not.toContain('200 OK')
    expect(await show(await issuer.token())).toMatchObject({ outcome: '200 in' })
  })

  test.each([
    '{"__proto__":CLAIMS}',
    '{"constructor":{"prototype":CLAIMS}}',
    '{"a":CLAIMS}',
    `{"a":${'['.repeat(2_500)}${']'.repeat(2_500)}}`,
  ])('with claims in an unexpected location is refused (threat T35)', async (text) => {
    const token = await signText(HEADER, text.replace('CLAIMS', claimsText()), key)
    expect(await show(token)).toMatchObject({ outcome: '401 unauthorized' })
  })

  test('may contain unknown claims, which have no effect (threat T35)', async () => {
    const odd = `"__proto__":{"scopes":["operator"]},"constructor":{"prototype":{}},"n":1e999,"big":9007199254740993,"s":"\\ud800","deep":${'['.repeat(900)}${']'.repeat(900)}`
    const token = await signText(HEADER, claimsText().replace('{', `{${odd},`), key)
    const response = await control.fetch('/api/whoami', { headers: { authorization: `Bearer ${token}` } })
    expect(response.status).toBe(200)
    const plain = await control.fetch('/api/whoami', {
      headers: { authorization: `Bearer ${await issuer.token()}` },
    })
    const { expiresMs: _, ...answer } = Object(await response.json()) as Record<string, unknown>
    expect(await plain.json()).toMatchObject(answer)
  })

  test('is never echoed', async () => {
    const canary = 'canary-7f3a'
    for (const token of [
      canary,
      `${canary}.a.b`,
      await issuer.token({ iss: `https://${canary}` }),
      await issuer.token({ aud: canary }),
      await issuer.token({ sub: canary, exp: 1 }),
      await issuer.token({}, { header: { kid: canary } }),
      await issuer.token({}, { header: { [canary]: 1, crit: [canary] } }),
    ]) {
      const { outcome, message } = await show(token)
      expect(['401 unauthorized', '503 issuer_unavailable']).toContain(outcome)
      expect(message).not.toContain(canary)
    }
    expect(control.log.join('\n')).not.toContain(canary)
  })
})
