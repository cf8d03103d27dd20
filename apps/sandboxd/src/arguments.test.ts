import { expect, test } from 'bun:test'
import { parseArguments } from './arguments.ts'

test('parseArguments listens on loopback with a secret by default', () => {
  expect(parseArguments(['--secret-file', 's'])).toMatchObject({
    kind: 'run',
    listen: { kind: 'tcp', hostname: '127.0.0.1', port: 8080 },
    secretFile: 's',
    isInsecure: false,
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

test.each([
  [[], 'no secret'],
  [['--insecure', '--listen', '0.0.0.0:1'], 'loopback'],
  [['--insecure', '--listen', 'example.com:1'], 'loopback'],
  [['--insecure', '--secret-file', 's'], 'exclude'],
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
  expect(parsed.kind).toBe('wrong')
  if (parsed.kind === 'wrong') expect(parsed.message).toContain(message)
})

test('parseArguments keeps the window within half the log', () => {
  const parsed = parseArguments(['--secret-file', 's', '--log-bytes', '65536'])
  if (parsed.kind !== 'run') throw new Error(parsed.kind)
  expect(parsed.session.window.maxBytes).toBe(32_768)
})
