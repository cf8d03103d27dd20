import { expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS, type StartSpec } from '@sandwire/internal-api'
import { createDaemonArguments } from './daemon-arguments.ts'

const spec: StartSpec = {
  id: '0123456789abcdefghjkmnpqrstvwxyz',
  name: 'dev',
  publicKey: 'key',
  network: { policy: 'none', allow: [] },
  limits: DEFAULT_SANDBOX_LIMITS,
  env: {},
}

test('sandboxd listens on a unix socket alone, with what it needs and no more', () => {
  expect(createDaemonArguments(spec)).toEqual([
    '--listen',
    'unix:/run/sandwire/sandboxd.sock',
    '--workspace',
    '/workspace',
    '--public-key',
    '/run/sandwire/public-key',
    '--sandbox',
    spec.id,
  ])
})

test('(threat T2) the environment of processes travels in a file, never in arguments', () => {
  const args = createDaemonArguments({ ...spec, env: { TOKEN: 'canary' } })
  expect(args.join(' ')).not.toContain('canary')
  expect(args.slice(-2)).toEqual(['--env-file', '/run/sandwire/env.json'])
})

test('limits that control sets are given to sandboxd', () => {
  const args = createDaemonArguments({ ...spec, maxSessions: 3, outputBytesPerSecond: 1_000 })
  expect(args.slice(-4)).toEqual(['--max-sessions', '3', '--output-bytes-per-second', '1000'])
})

test('a sandbox with a way out is told where it is', () => {
  for (const policy of ['allowlist', 'open'] as const)
    expect(createDaemonArguments({ ...spec, network: { policy, allow: [] } }).slice(-2)).toEqual([
      '--proxy-socket',
      '/run/sandwire-egress/proxy.sock',
    ])
})
