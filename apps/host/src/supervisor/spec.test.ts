import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import type { IsolationSettings } from '../isolation/isolation.ts'
import { readSpec, type SupervisorSpec } from './spec.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'spec-'))
const file = path.join(folder, 'spec.json')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A spec with every setting, so that a new one is not lost on the way to the supervisor. */
const settings = {
  dataFolder: '/data',
  runBase: '/run/x',
  scope: '0a1b2c3d',
  account: 'local',
  program: { executable: '/bun', code: { folder: '/code', entry: 'main.js' } },
  isRoot: false,
  diskBytesPerSecond: 7,
  egressCode: '/egress',
  hasOverlays: true,
  workspace: '/home/me/work',
} satisfies Required<IsolationSettings>

const spec: SupervisorSpec = {
  start: {
    id: '0123456789abcdefghjkmnpqrstvwxyz',
    name: 'dev',
    publicKey: 'key',
    network: { policy: 'allowlist', allow: ['set:npm'] },
    limits: DEFAULT_SANDBOX_LIMITS,
    env: { A: 'b' },
  },
  isolation: { kind: 'bubblewrap', ...settings },
  folder: '/data/sandboxes/x',
  controlSocket: '/run/c.sock',
  slots: { folder: '/run/x/slots', count: 100 },
  unclaimedMs: 1,
  readyMs: 2,
}

test('reads a spec as written', () => {
  writeFileSync(file, JSON.stringify(spec))
  expect(JSON.stringify(readSpec(file))).toBe(JSON.stringify(spec))
})

test('ignores a spec that this version does not know', () => {
  for (const value of [{}, { ...spec, more: 1 }, { ...spec, folder: 'relative' }, { ...spec, start: null }]) {
    writeFileSync(file, JSON.stringify(value))
    expect(readSpec(file)).toBeUndefined()
  }
})
