import { expect, test } from 'bun:test'
import { endpointDecision, networkScopeOf } from './endpoint-policy.ts'

test.each([
  ['http://localhost:1', 'loopback'],
  ['https://LOCALHOST.', 'loopback'],
  ['https://a.localhost', 'loopback'],
  ['http://127.0.0.1', 'loopback'],
  ['https://127.8.9.1', 'loopback'],
  ['https://2130706433', 'loopback'],
  ['https://0x7f.1', 'loopback'],
  ['https://0.0.0.0', 'loopback'],
  ['https://[::1]', 'loopback'],
  ['https://[::]', 'loopback'],
  ['https://[::ffff:127.0.0.1]', 'loopback'],
  ['https://169.254.169.254', 'linkLocal'],
  ['https://[::ffff:169.254.169.254]', 'linkLocal'],
  ['https://[fe80::1]', 'linkLocal'],
  ['https://10.1.2.3', 'private'],
  ['https://172.31.0.1', 'private'],
  ['https://192.168.0.1', 'private'],
  ['https://100.64.0.1', 'private'],
  ['https://[fd00::1]', 'private'],
  ['https://intranet', 'private'],
  ['https://nas.local', 'private'],
  ['https://172.32.0.1', 'public'],
  ['https://8.8.8.8', 'public'],
  ['https://[2606:4700::1]', 'public'],
  ['https://login.example', 'public'],
  ['https://localhost.example', 'public'],
])('networkScopeOf of %s is %s', (url, expected) => expect(networkScopeOf(url)).toBe(expected as never))

const LOCAL = 'http://127.0.0.1:1'
const LINK = 'https://169.254.0.1'
const PRIVATE = 'https://10.0.0.1'
const PUBLIC = 'https://login.example'

test.each([
  [PUBLIC, { [LOCAL]: 'denied', [LINK]: 'denied', [PRIVATE]: 'needsTrust', [PUBLIC]: 'allowed' }],
  [PRIVATE, { [LOCAL]: 'denied', [LINK]: 'denied', [PRIVATE]: 'allowed', [PUBLIC]: 'allowed' }],
  [LOCAL, { [LOCAL]: 'allowed', [LINK]: 'denied', [PRIVATE]: 'allowed', [PUBLIC]: 'allowed' }],
])(
  'endpointDecision lets %s refer only to its own network or a wider one (threat T2)',
  (source, verdicts) => {
    const urls = Object.keys(verdicts)
    expect<Record<string, string>>(
      Object.fromEntries(urls.map((url) => [url, endpointDecision(url, source)])),
    ).toEqual(verdicts)
  },
)
