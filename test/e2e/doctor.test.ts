import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { PROBES } from '../../apps/host/src/doctor/run-probes.ts'
import type { ProbeReport } from '../../apps/host/src/doctor/probe-protocol.ts'
import {
  asStarter,
  createDataFolder,
  removeDataFolder,
  findStarterProblem,
  type Starter,
} from './support/isolation/isolated.ts'

const DOCTOR = new URL('./support/isolation/doctor.ts', import.meta.url).pathname
const PROBER = join(import.meta.dir, '../../apps/host/src/doctor/prober/main.ts')

/** Probes that may report `weak` when sandboxes are not started by root. */
const WEAK_WITHOUT_ROOT = [
  'daemon-reach',
  'init-memory',
  'watch-devices',
  'mount-table',
  'terminal-limit',
  'processor-limit',
  'memory-limit',
  'file-limit',
  'disk-limit',
]
/**
 * Probes that may pass without a sandbox. The first two are shown to fail below; a busy machine can hold back the third; a process
 * without a sandbox has no mounts of its own, and the init of a machine may be protected.
 */
const NOT_HELD_BY_SANDBOX = ['descriptors', 'environment', 'processor-limit', 'mount-table', 'init-memory']

let data = ''
afterEach(() => removeDataFolder(data))

async function runDoctor(
  starter: Starter,
  kind: 'bubblewrap' | 'none',
  before: readonly string[] = [],
): Promise<ProbeReport[]> {
  data = createDataFolder(starter)
  const argv = [...before, ...asStarter(starter), process.execPath, DOCTOR, data, kind]
  const child = Bun.spawn(argv, { stdio: ['ignore', 'pipe', 'inherit'] })
  return new Response(child.stdout).json()
}

function named(reports: readonly ProbeReport[], verdict: ProbeReport['verdict']): string[] {
  return reports.filter((each) => each.verdict === verdict).map(({ name }) => name)
}

for (const starter of ['root', 'nobody'] satisfies Starter[]) {
  const problem = await findStarterProblem(starter)
  if (problem !== undefined) console.error(`break-out probes as ${starter}: skipped, ${problem}`)

  test.skipIf(problem !== undefined)(
    `no probe escapes from a sandbox started by ${starter} (threat T39)`,
    async () => {
      const reports = await runDoctor(starter, 'bubblewrap')
      expect(reports.map(({ name }) => name)).toEqual([...PROBES])
      expect(reports.filter(({ verdict }) => verdict === 'failed')).toEqual([])
      const known = starter === 'root' ? [] : WEAK_WITHOUT_ROOT
      expect(named(reports, 'weak').filter((name) => !known.includes(name))).toEqual([])
    },
  )
}

test.skipIf((await findStarterProblem('root')) !== undefined)(
  'every probe fails without isolation (threat T39)',
  async () => {
    // In its own mount namespace, because one of the probes mounts.
    const reports = await runDoctor('root', 'none', ['unshare', '--mount', '--propagation', 'private', '--'])
    expect(named(reports, 'ok').filter((name) => !NOT_HELD_BY_SANDBOX.includes(name))).toEqual([])
  },
)

describe('a single probe', () => {
  beforeEach(() => {
    data = createDataFolder('root')
  })

  async function probe(
    part: string,
    options: { env?: Record<string, string>; fd?: number },
  ): Promise<string> {
    const targets = {
      processMarkerBackwards: 'x',
      abstractSocket: 'x',
      addresses: [],
      files: [],
      used: [],
      locked: '/usr/bin/env',
      folder: '/nowhere',
      variable: 'PROBE_TARGET',
    }
    const limits = { memoryBytes: 2 ** 28, pids: 64, milliCpus: 500, diskBytes: 2 ** 25 }
    const task = JSON.stringify({
      targets: { ...targets, daemonSocket: '/nowhere' },
      limits,
      workspace: data,
    })
    const child = Bun.spawn([process.execPath, PROBER, part, task], {
      env: { PATH: process.env['PATH'], ...options.env },
      stdio: ['ignore', 'pipe', 'inherit', ...(options.fd === undefined ? [] : [options.fd])],
    })
    return new Response(child.stdout).text()
  }

  test('detects an inherited file descriptor', async () => {
    const fd = openSync('/etc/passwd', 'r')
    expect(await probe('files', { fd })).toContain('"descriptors","verdict":"failed"')
    expect(await probe('files', {})).toContain('"descriptors","verdict":"ok"')
  })

  test('detects an inherited environment', async () => {
    expect(await probe('neighbors', { env: { PROBE_TARGET: '1' } })).toContain(
      '"environment","verdict":"failed"',
    )
    expect(await probe('neighbors', {})).toContain('"environment","verdict":"ok"')
  })
})
