import { expect, test } from 'bun:test'
import { parseArguments } from './arguments.ts'

test('parseArguments listens on loopback with a secret by default', () => {
  expect(parseArguments(['--secret-file', 's'])).toMatchObject({
    kind: 'run',
    listen: { kind: 'tcp', hostname: '127.0.0.1', port: 8080 },
    credential: { kind: 'secret', file: 's' },
    origins: [],
  })
})

test.each([
  ['unix:/tmp/a b.sock', { kind: 'unix', path: '/tmp/a b.sock' }],
  ['[::1]:0', { kind: 'tcp', hostname: '::1', port: 0 }],
  ['0.0.0.0:65535', { kind: 'tcp', hostname: '0.0.0.0', port: 65_535 }],
])('parseArguments listens on %s', (listen, expected) => {
  expect(parseArguments(['--secret-file', 's', '--listen', listen])).toMatchObject({ listen: expected })
})

const SANDBOX = '0123456789abcdefghjkmnpqrstvwxyz'

test('parseArguments accepts a public key with its sandbox, and the user of processes', () => {
  const argv = ['--public-key', 'k', '--sandbox', SANDBOX, '--run-as', '1000:1001', '--env-file', 'e']
  expect(parseArguments([...argv, '--proxy-socket', 'p'])).toMatchObject({
    kind: 'run',
    credential: { kind: 'token', publicKeyFile: 'k', sandbox: SANDBOX },
    runAs: { uid: 1000, gid: 1001 },
    envFile: 'e',
    proxySocket: 'p',
  })
})

test.each([
  [[], 'no credential'],
  [['--public-key', 'k'], 'given together'],
  [['--sandbox', SANDBOX, '--secret-file', 's'], 'given together'],
  [['--public-key', 'k', '--sandbox', 'dev'], '--sandbox'],
  [['--public-key', 'k', '--sandbox', SANDBOX, '--insecure'], 'mutually exclusive'],
  [['--public-key', 'k', '--sandbox', SANDBOX, '--secret-file', 's'], 'mutually exclusive'],
  [['--secret-file', 's', '--run-as', '0:1'], '--run-as'],
  [['--secret-file', 's', '--run-as', '1:0'], '--run-as'],
  [['--secret-file', 's', '--run-as', 'nobody'], '--run-as'],
  [['--secret-file', 's', '--run-as', '1000'], '--run-as'],
  [['--insecure', '--listen', '0.0.0.0:1'], 'loopback'],
  [['--insecure', '--listen', 'example.com:1'], 'loopback'],
  [['--insecure', '--secret-file', 's'], 'mutually exclusive'],
  [['--secret-file', 's', '--listen', '8080'], '--listen'],
  [['--secret-file', 's', '--listen', 'unix:'], '--listen'],
  [['--secret-file', 's', '--listen', 'h:65536'], '--listen'],
  [['--secret-file', 's', '--origin', 'https://app.example/'], '--origin'],
  [['--secret-file', 's', '--origin', '*'], '--origin'],
  [['--secret-file', 's', '--max-sessions', '0'], '--max-sessions'],
  [['--secret-file', 's', '--log-bytes', '1e9'], '--log-bytes'],
  [['--secret-file', 's', '--unknown'], '--unknown'],
  [['--secret-file', 's', 'extra'], 'extra'],
])('parseArguments refuses %j', (argv, message) => {
  const parsed = parseArguments(argv)
  expect(parsed.kind).toBe('invalid')
  if (parsed.kind === 'invalid') expect(parsed.message).toContain(message)
})

test('parseArguments limits the window to half the log', () => {
  const parsed = parseArguments(['--secret-file', 's', '--log-bytes', '65536'])
  if (parsed.kind !== 'run') throw new Error(parsed.kind)
  expect(parsed.session.window.maxBytes).toBe(32_768)
})
