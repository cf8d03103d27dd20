import { describe, expect, test } from 'bun:test'
import { HOST_SETS } from './host-sets.ts'
import { checkAddresses, createPolicy, explainBlock } from './policy.ts'
import { parseConnectTarget } from './target.ts'

function target(text: string) {
  const parsed = parseConnectTarget(text)
  if (parsed === undefined) throw new Error(`Not a target: "${text}"`)
  return parsed
}

function decide(allow: readonly string[], text: string) {
  return createPolicy({ policy: 'allowlist', allow })(target(text)) ?? 'allowed'
}

describe('allowlist (threat T22)', () => {
  test('an empty list allows nothing', () => expect(decide([], 'good.com:443')).toBe('not_listed'))

  test('a name allows ports 80 and 443, in every spelling', () => {
    expect(decide(['good.com'], 'good.com:443')).toBe('allowed')
    expect(decide(['good.com'], 'GOOD.COM.:80')).toBe('allowed')
    expect(decide(['Good.Com.'], 'good.com:443')).toBe('allowed')
    expect(decide(['good.com'], 'good.com:22')).toBe('port_not_listed')
    expect(decide(['good.com'], 'good.com:25')).toBe('port_not_listed')
  })

  test('a name allows no other', () => {
    for (const other of [
      'good.com.evil.com',
      'www.good.com',
      'evilgood.com',
      'good.co',
      'ood.com',
      'com.good',
    ])
      expect(decide(['good.com'], `${other}:443`), other).toBe('not_listed')
  })

  test('*.name allows subdomains, not the name itself', () => {
    expect(decide(['*.good.com'], 'a.good.com:443')).toBe('allowed')
    expect(decide(['*.good.com'], 'a.b.good.com:443')).toBe('allowed')
    for (const other of ['good.com', 'evilgood.com', 'a.good.com.evil.com'])
      expect(decide(['*.good.com'], `${other}:443`), other).toBe('not_listed')
  })

  test('name:port allows that port only', () => {
    expect(decide(['good.com:22'], 'good.com:22')).toBe('allowed')
    expect(decide(['good.com:22'], 'good.com:443')).toBe('port_not_listed')
    expect(decide(['good.com', '*.good.com:22'], 'a.good.com:22')).toBe('allowed')
  })

  test('an address must be listed as such', () => {
    expect(decide(['good.com'], '93.184.216.34:443')).toBe('not_listed')
    expect(decide(['93.184.216.34'], '93.184.216.34:443')).toBe('allowed')
    expect(decide(['[2606:0::1]:8443'], '[2606::1]:8443')).toBe('allowed')
    expect(decide(['*.216.example'], '93.184.216.34:443')).toBe('not_listed')
  })

  test('a predefined set allows its hosts', () => {
    for (const host of HOST_SETS['npm'] ?? []) expect(decide(['set:npm'], `${host}:443`)).toBe('allowed')
    expect(decide(['set:npm'], 'pypi.org:443')).toBe('not_listed')
    for (const name of ['npm', 'pypi', 'debian', 'github', 'crates', 'go'])
      expect(HOST_SETS).toHaveProperty(name)
    for (const name of Object.keys(HOST_SETS))
      expect(decide([`set:${name}`], 'evil.com:443')).toBe('not_listed')
  })

  test.each([
    '*',
    '*.',
    '*.com.*',
    'set:',
    'set:nope',
    'set:constructor',
    'http://good.com',
    'good.com/',
    'good',
    '',
    'good.com:0',
    'good.com:99999',
    '*.1.2.3.4',
    '**.good.com',
    'a.*.com',
    '10.0.0.0/8',
    'good.com\0',
    'g\x1b[31m.com',
  ])('reports an invalid entry: %j', (entry) =>
    expect(() => decide([entry], 'good.com:443')).toThrow(/^Cannot use "[\x20-\x7e]*" in an allowlist/),
  )
})

test('none refuses everything', () => {
  const policy = createPolicy({ policy: 'none', allow: ['good.com'] })
  expect(policy(target('good.com:443'))).toBe('network_off')
  expect(policy(target('8.8.8.8:443'))).toBe('network_off')
})

test('open allows every host and port but mail', () => {
  const policy = createPolicy({ policy: 'open', allow: [] })
  for (const text of ['any.example:443', 'any.example:22', 'any.example:9418', '8.8.8.8:53'])
    expect(policy(target(text)), text).toBeUndefined()
  for (const port of [25, 465, 587]) expect(policy(target(`any.example:${port}`))).toBe('port_refused')
})

test('one non-public address blocks the name (threat T21)', () => {
  expect(checkAddresses(['93.184.216.34', '2606::1'], [])?.map(({ text }) => text)).toEqual([
    '93.184.216.34',
    '2606::1',
  ])
  expect(checkAddresses(['93.184.216.34', '127.0.0.1'], [])).toBeUndefined()
  expect(checkAddresses(['nonsense'], [])).toBeUndefined()
  expect(checkAddresses(['fe80::1%eth0'], [])).toBeUndefined()
})

test('an address of this machine is refused, in every form (threat T22)', () => {
  for (const address of ['93.184.216.34', '::ffff:93.184.216.34', '64:ff9b::5db8:d822'])
    expect(checkAddresses([address], ['93.184.216.34']), address).toBeUndefined()
  expect(checkAddresses(['93.184.216.35'], ['93.184.216.34', 'fe80::1%eth0'])).toHaveLength(1)
})

test.each([
  ['93.184.216.77', '93.184.216.0/24'],
  ['::ffff:93.184.216.77', '93.184.216.0/24'],
  ['64:ff9b::5db8:d84d', '93.184.216.0/24'],
  ['2606:2800::77', '2606:2800::/64'],
])('checkAddresses refuses %s where the machine has %s (threat T21)', (address, network) => {
  expect(checkAddresses([address], [network])).toBeUndefined()
  expect(checkAddresses(['93.184.217.1', '2606:2801::1'], [network])).toHaveLength(2)
})

test('explains a block in one line, with how to allow the host', () => {
  const reasons = ['network_off', 'not_listed', 'port_not_listed', 'port_refused', 'address_refused'] as const
  for (const reason of reasons)
    expect(explainBlock(reason, target('Good.com:8080'))).toMatch(
      /^Sandwire blocked good\.com:8080: [\x20-\x7e]+$/,
    )
  expect(explainBlock('not_listed', target('good.com:443'))).toEndWith('--allow good.com')
  expect(explainBlock('not_listed', target('good.com:22'))).toEndWith('--allow good.com:22')
})
