import { expect, test } from 'bun:test'
import { parseAddress } from './server-address.ts'

test.each([
  ['http://h', 'http://h/attach'],
  ['https://h/', 'https://h/attach'],
  ['ws://h:1/x', 'ws://h:1/x'],
  ['wss://h/attach?sandbox=a#part', 'wss://h/attach?sandbox=a'],
])('parseAddress reads %s', (text, href) => {
  const parsed = parseAddress(text)
  expect(parsed.isOk ? parsed.url.href : parsed.message).toBe(href)
})

test.each(['localhost:8080', 'ftp://h', '', 'file:///etc/passwd', '--x'])(
  'parseAddress refuses "%s"',
  (text) => {
    expect(parseAddress(text)).toMatchObject({
      isOk: false,
      message: 'The address must begin with http://, https://, ws:// or wss://',
      hint: 'it looks like http://127.0.0.1:8080',
    })
  },
)

test.each(['http://', 'https://h:99999', 'ws://h:port', 'WSS://[::1', 'http://a b'])(
  'parseAddress says what is wrong with "%s", which begins as it must',
  (text) => {
    expect(parseAddress(text)).toMatchObject({
      isOk: false,
      message: 'The host or the port of the address is missing or malformed',
      hint: 'it looks like http://127.0.0.1:8080',
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
