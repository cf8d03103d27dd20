import { expect, test } from 'bun:test'
import { create, parseCreateBody } from './create.ts'
import { ParsedOptions } from '../options/parse-options.ts'

function read(...argv: string[]) {
  return parseCreateBody(new ParsedOptions(argv, create.options), 'dev', { HOME: '/h' })
}

test('create sends only given options', () => expect(read()).toEqual({ name: 'dev' }))

test('create parses every option', () => {
  expect(
    read(
      '--allow',
      'set:npm',
      '--allow=good.com:22',
      '--memory',
      '1G',
      '--disk=2G',
      '--cpus',
      '1.5',
      '--pids',
      '64',
      '--sleep-after',
      '10m',
      '--env',
      'A=b=c',
      '--env',
      'HOME',
      '--no-start',
    ),
  ).toEqual({
    name: 'dev',
    network: { policy: 'allowlist', allow: ['set:npm', 'good.com:22'] },
    limits: { memoryBytes: 1024 ** 3, diskBytes: 2 * 1024 ** 3, milliCpus: 1500, pids: 64 },
    sleepAfterSeconds: 600,
    env: { A: 'b=c', HOME: '/h' },
    start: false,
  })
  expect(read('--network', 'open').network).toEqual({ policy: 'open', allow: [] })
  expect(read('--sleep-after', 'never').sleepAfterSeconds).toBeNull()
})

test.each([
  [['--network', 'closed'], 'must be none or allowlist or open'],
  [['--network', 'open', '--allow', 'a.com'], 'cannot be used with "--network open"'],
  [['--memory', 'lots'], 'a size such as'],
  [['--cpus', '0'], 'a number such as'],
  [['--cpus', '-1'], 'a number such as'],
  [['--pids', '1.5'], 'whole number'],
  [['--sleep-after', '0'], 'a time such as'],
  [['--env', 'NOT_SET'], 'is not set in this shell'],
  [['--env', '1=2'], 'NAME=VALUE'],
  [['--bogus'], 'Unknown option'],
])('create refuses %j', (argv, message) => expect(() => read(...argv)).toThrow(message))

test('create refuses a variable that is too long', () => {
  expect(() => read('--env', `A=${'x'.repeat(32_769)}`)).toThrow('Variable "A" is too long')
})
