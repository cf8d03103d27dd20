import { expect, test } from 'bun:test'
import { isSecureUrl, bypassProxyForLoopback, parseAddress, parseShareLink, webAddress } from './address.ts'

test.each([
  ['http://h', 'http://h/attach'],
  ['https://h/', 'https://h/attach'],
  ['ws://h:1/x', 'ws://h:1/x'],
  ['wss://h/attach?sandbox=a#part', 'wss://h/attach?sandbox=a'],
])('parseAddress parses %s', (text, href) => {
  const parsed = parseAddress(text)
  expect(parsed.isOk ? parsed.url.href : parsed.message).toBe(href)
})

test.each(['localhost:8080', 'ftp://h', '', 'file:///etc/passwd', '--x'])(
  'parseAddress refuses "%s"',
  (text) => {
    expect(parseAddress(text)).toMatchObject({
      isOk: false,
      message: 'The address must begin with http://, https://, ws:// or wss://',
      hint: 'for example http://127.0.0.1:8080',
    })
  },
)

test.each(['http://', 'https://h:99999', 'ws://h:port', 'WSS://[::1', 'http://a b'])(
  'parseAddress refuses the malformed "%s"',
  (text) => {
    expect(parseAddress(text)).toMatchObject({
      isOk: false,
      message: 'The host or port of the address is missing or malformed',
      hint: 'for example http://127.0.0.1:8080',
    })
  },
)

test.each([
  'http://user@h',
  'http://:hunter2@h',
  'http://h/?token=hunter2',
  'http://h/attach?access_token=hunter2',
])('parseAddress refuses a credential in %s without repeating it', (text) => {
  const parsed = parseAddress(text)
  expect(parsed).toMatchObject({ isOk: false })
  expect(JSON.stringify(parsed)).toContain('--token-file')
  expect(JSON.stringify(parsed)).not.toContain('hunter2')
})

const SECRET = `${'0'.repeat(32)}.${'1'.repeat(20)}.${'s'.repeat(43)}`

test('parseShareLink returns the origin and the secret', () => {
  expect(parseShareLink(` https://h.example:1/join#${SECRET}\n`)).toEqual({
    origin: 'https://h.example:1',
    secret: SECRET,
  })
})

test('parseShareLink uses localhost for the names of a local server', () => {
  const text = `http://sandwire-0123456789abcdef0123.localhost:8787/join#${SECRET}`
  expect(parseShareLink(text)).toEqual({ origin: 'http://localhost:8787', secret: SECRET })
  const secure = `https://sandwire.localhost/join#${SECRET}`
  expect(parseShareLink(secure).origin).toBe('https://sandwire.localhost')
})

test.each([
  '',
  'x',
  'https://h.example/join',
  `https://h.example/other#${SECRET}`,
  `https://h.example/join?${SECRET}`,
  `https://h.example/join#${SECRET}/../x`,
  `http://h.example/join#${SECRET}`,
  `https://u:p@h.example/join#${SECRET}`,
  `ftp://h.example/join#${SECRET}`,
])('parseShareLink refuses %j without repeating it', (text) => {
  try {
    parseShareLink(text)
  } catch (error) {
    expect(String(error)).not.toContain('ssss')
    return
  }
  throw new Error('It was taken')
})

test.each([
  ['https://a.example', true],
  ['https://a.example:8443/x', true],
  ['http://localhost:1', true],
  ['http://127.0.0.1:1', true],
  ['http://[::1]:1', true],
  ['http://a.example', false],
  ['http://localhost.evil.example', false],
  ['http://127.0.0.1.evil.example', false],
  ['http://0.0.0.0', false],
  ['https://user:password@a.example', false],
  ['ftp://localhost', false],
  ['file:///etc/passwd', false],
  ['javascript:alert(1)', false],
  ['nonsense', false],
])('isSecureUrl of %s is %p', (url, expected) => expect(isSecureUrl(url)).toBe(expected))

test.each([
  ['https://a.example/device', 'https://a.example/device'],
  ['http://a.example/device?user_code=AB-CD', 'http://a.example/device?user_code=AB-CD'],
  ['https://a.example/\x1b]0;title\x07x', 'https://a.example/%1B]0;title%07x'],
  ['https://a.example/\u202eedoc', 'https://a.example/%E2%80%AEedoc'],
  ['https://a.example/#\x1b[2J', 'https://a.example/#%1B[2J'],
])('webAddress makes %j safe to print', (given, shown) => expect(webAddress(given)).toBe(shown))

test.each([
  'javascript:alert(1)',
  'file:///etc/passwd',
  'data:text/html,x',
  '--version',
  '',
  'https://bank.example@evil.example/',
  `https://a.example/${'x'.repeat(4000)}`,
])('webAddress refuses %j', (given) => expect(webAddress(given)).toBeUndefined())

test('adds loopback to the proxy exceptions', () => {
  const none: Record<string, string | undefined> = {}
  bypassProxyForLoopback(none)
  expect(none['NO_PROXY']).toBe('localhost,127.0.0.1,::1')
  const some: Record<string, string | undefined> = { NO_PROXY: 'example.com' }
  bypassProxyForLoopback(some)
  expect([some['no_proxy'], some['NO_PROXY']]).toEqual(Array(2).fill('example.com,localhost,127.0.0.1,::1'))
})
