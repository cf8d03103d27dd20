import { describe, expect, test } from 'bun:test'
import { validateListenSettings, type ListenSettings } from './listen.ts'

const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----'
const KEY = '-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----'
const FILES: Readonly<Record<string, string>> = { '/cert': CERTIFICATE, '/key': KEY, '/junk': 'junk' }

function validate(
  env: Record<string, string>,
  hasIdentity = true,
): { readonly reach: ListenSettings; readonly problems: string[] } {
  const problems: string[] = []
  const readFile = (file: string): string => {
    const text = FILES[file]
    if (text === undefined) throw new Error('there is no such file')
    return text
  }
  return {
    reach: validateListenSettings({ env, readFile, readSecretFile: readFile, hasIdentity }, problems),
    problems,
  }
}

const PUBLIC = { SANDWIRE_PUBLIC_URL: 'https://sandwire.example' }

describe('validateListenSettings', () => {
  test('listens on loopback by default', () => {
    expect(validate({}, false)).toEqual({
      reach: { addresses: ['127.0.0.1', '::1'], mode: 'local' },
      problems: [],
    })
  })

  test.each(['0.0.0.0', '::', '[::]', '192.168.0.1', '127.0.0.2'])('listens on %s', (bind) => {
    const { reach, problems } = validate({ SANDWIRE_BIND: bind, ...PUBLIC })
    expect(problems).toEqual([])
    expect(reach).toMatchObject({ mode: 'open', publicOrigin: 'https://sandwire.example' })
    expect(reach.addresses[0]).not.toContain('[')
  })

  test.each(['0.0.0.0', '::', '192.168.0.1'])('refuses %s without authentication for other users', (bind) => {
    expect(validate({ SANDWIRE_BIND: bind, ...PUBLIC }, false).problems).toEqual([
      expect.stringContaining('SANDWIRE_ISSUER'),
      expect.stringContaining('SANDWIRE_ISSUER'),
    ])
  })

  test('is open behind a proxy on the same machine', () => {
    expect(validate(PUBLIC).reach).toMatchObject({ addresses: ['127.0.0.1', '::1'], mode: 'open' })
    expect(validate(PUBLIC, false).problems).toEqual([expect.stringContaining('SANDWIRE_ISSUER')])
  })

  test('requires a public URL', () => {
    expect(validate({ SANDWIRE_BIND: '0.0.0.0' }).problems).toEqual([
      expect.stringContaining('SANDWIRE_PUBLIC_URL is not set'),
    ])
  })

  test.each([
    'http://sandwire.example',
    'ftp://sandwire.example',
    'sandwire.example',
    'https://a.example/path',
    'https://user:pass@a.example',
    'https://a.example/?q',
    'https://a.example/#f',
    'http://127.0.0.1.example',
  ])('refuses the public URL %s', (url) => {
    expect(validate({ SANDWIRE_PUBLIC_URL: url }).problems).toHaveLength(1)
  })

  test.each(['http://localhost:9000', 'http://127.0.0.1:1', 'http://[::1]:1', 'https://localhost'])(
    'is local with the public URL %s',
    (url) => {
      expect(validate({ SANDWIRE_PUBLIC_URL: url }, false)).toMatchObject({
        reach: { mode: 'local', publicOrigin: url },
        problems: [],
      })
    },
  )

  test('accepts only a header name for the proxy’s header', () => {
    const name = (header: string) => validate({ SANDWIRE_CLIENT_ADDRESS_HEADER: header })
    expect(name('X-Forwarded-For').reach.clientAddressHeader).toBe('x-forwarded-for')
    expect(name('a header').problems).toHaveLength(1)
  })

  test('reads embed origins; none by default', () => {
    const name = (text: string) => validate({ SANDWIRE_EMBED_ORIGINS: text })
    expect(name('https://a.example, http://localhost:5199\nhttps://a.example')).toMatchObject({
      reach: { embedOrigins: ['https://a.example', 'http://localhost:5199'] },
      problems: [],
    })
    expect(validate({}).reach.embedOrigins).toBeUndefined()
    expect(name('https://a.example https://*.b.example http://c.example').problems).toEqual([
      'SANDWIRE_EMBED_ORIGINS has "https://*.b.example": expected one origin, without wildcards',
      'SANDWIRE_EMBED_ORIGINS has "http://c.example": expected https, unless it is loopback',
    ])
  })

  test('uses TLS with a certificate and key', () => {
    const env = { SANDWIRE_TLS_CERT: '/cert', SANDWIRE_TLS_KEY: '/key', ...PUBLIC }
    expect(validate(env)).toMatchObject({
      reach: { tls: { certificateChain: CERTIFICATE, privateKey: KEY } },
      problems: [],
    })
  })

  test.each<Record<string, string>>([
    { SANDWIRE_TLS_CERT: '/cert', ...PUBLIC },
    { SANDWIRE_TLS_KEY: '/key', ...PUBLIC },
    { SANDWIRE_TLS_CERT: '/junk', SANDWIRE_TLS_KEY: '/key', ...PUBLIC },
    { SANDWIRE_TLS_CERT: '/cert', SANDWIRE_TLS_KEY: '/cert', ...PUBLIC },
    { SANDWIRE_TLS_CERT: '/cert', SANDWIRE_TLS_KEY: '/nowhere', ...PUBLIC },
    { SANDWIRE_TLS_CERT: '/cert', SANDWIRE_TLS_KEY: '/key' },
  ])('refuses incomplete TLS settings: %j', (env) => {
    expect(validate(env).problems).toHaveLength(1)
  })
})
