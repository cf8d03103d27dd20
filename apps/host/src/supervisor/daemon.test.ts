import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DEFAULT_SANDBOX_LIMITS, type StartSpec, STOP_REASON_FILE } from '@sandwire/internal-api'
import { createDaemonArguments, writeStopReason } from './daemon.ts'

const spec: StartSpec = {
  id: '0123456789abcdefghjkmnpqrstvwxyz',
  name: 'dev',
  publicKey: 'key',
  network: { policy: 'none', allow: [] },
  limits: DEFAULT_SANDBOX_LIMITS,
  env: {},
}

test('starts sandboxd on a unix socket with the required arguments', () => {
  expect(createDaemonArguments(spec)).toEqual([
    '--listen',
    'unix:/run/sandwire/sandboxd.sock',
    '--workspace',
    '/workspace',
    '--save-home',
    '/home/user',
    '--state',
    '/var/lib/sandwire',
    '--public-key',
    '/run/sandwire/public-key',
    '--sandbox',
    spec.id,
  ])
})

test('tells sandboxd that other programs use a served folder', () => {
  expect(createDaemonArguments(spec)).not.toContain('--shared-workspace')
  expect(createDaemonArguments(spec, { isServed: true })).toContain('--shared-workspace')
})

test('leads a port to the credential gateway where sandboxes have ports of their own', () => {
  expect(createDaemonArguments(spec)).not.toContain('--gateway-socket')
  const args = createDaemonArguments(spec, { hasGateway: true })
  expect(args.slice(-2)).toEqual(['--gateway-socket', '/run/sandwire-gateway/gate.sock'])
})

test('has sandboxd wait for a last save where control saves files', () => {
  expect(createDaemonArguments(spec, { lastSaveMs: 15_000 }).slice(-2)).toEqual(['--last-save-seconds', '15'])
})

test('(threat T2) passes the environment of processes in a file, never in arguments', () => {
  const args = createDaemonArguments({ ...spec, env: { TOKEN: 'canary' } })
  expect(args.join(' ')).not.toContain('canary')
  expect(args.slice(-2)).toEqual(['--env-file', '/run/sandwire/env.json'])
})

test('passes control’s limits to sandboxd', () => {
  const args = createDaemonArguments({ ...spec, maxSessions: 3, outputBytesPerSecond: 1_000 })
  expect(args.slice(-4)).toEqual(['--max-sessions', '3', '--output-bytes-per-second', '1000'])
})

test('passes the proxy socket to a sandbox with a network', () => {
  for (const policy of ['allowlist', 'open'] as const)
    expect(createDaemonArguments({ ...spec, network: { policy, allow: [] } }).slice(-2)).toEqual([
      '--proxy-socket',
      '/run/sandwire-egress/proxy.sock',
    ])
})

let folder = ''
const at = (name: string): string => path.join(folder, name)
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'stop-reason-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const leave = (): void => writeStopReason({ daemonSocket: at('sandboxd.sock') }, 'idle')

test('writes the reason readable for sandboxd’s user', () => {
  leave()
  expect(readFileSync(at(STOP_REASON_FILE), 'utf8')).toBe('idle')
  expect(statSync(at(STOP_REASON_FILE)).mode & 0o777).toBe(0o644)
})

test('follows and replaces no file of the sandbox', () => {
  symlinkSync(at('elsewhere'), at(STOP_REASON_FILE))
  leave()
  expect(existsSync(at('elsewhere'))).toBe(false)
  rmSync(at(STOP_REASON_FILE))
  writeFileSync(at(STOP_REASON_FILE), 'mine')
  leave()
  expect(readFileSync(at(STOP_REASON_FILE), 'utf8')).toBe('mine')
})
