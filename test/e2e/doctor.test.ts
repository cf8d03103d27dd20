import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chownSync, mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { PROBES } from '../../apps/host/src/doctor/run-probes.ts'
import type { ProbeReport } from '../../apps/host/src/doctor/probe-protocol.ts'
import { createDataFolder, findStarterProblem, removeDataFolder } from './support/isolation/isolated.ts'
import { AS_NOBODY, canBecomeNobody, NOBODY } from './support/nobody.ts'

const MAIN = resolve(import.meta.dir, '../../apps/host/src/main.ts')
const hasBubblewrap = Bun.which('bwrap') !== null
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
 * Probes that may pass without a sandbox. The first two are shown to fail below, and pass in a sandbox; a busy machine can hold back the third; a process
 * without a sandbox has no mounts of its own, and the init of a machine may be protected.
 */
const NOT_HELD_BY_SANDBOX = ['descriptors', 'environment', 'processor-limit', 'mount-table', 'init-memory']

let data = ''
afterEach(() => removeDataFolder(data))

interface DoctorRun {
  readonly code: number
  readonly stdout: string
  /** Files that it left in its folder for temporary files. */
  readonly left: readonly string[]
}

/** Runs `sandwire doctor`. */
async function runDoctor(
  isNobody: boolean,
  isolation: string,
  env: Readonly<Record<string, string>> = {},
): Promise<DoctorRun> {
  const folder = mkdtempSync('/tmp/doctor-')
  if (isNobody) chownSync(folder, NOBODY, NOBODY)
  const prefix = isNobody ? AS_NOBODY : []
  const child = Bun.spawn([...prefix, process.execPath, MAIN, 'doctor', '--data', join(folder, 'data')], {
    env: {
      ...process.env,
      TMPDIR: folder,
      SANDWIRE_ISOLATION: isolation,
      XDG_RUNTIME_DIR: undefined,
      HOME: folder,
      ...env,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const [stdout, code] = await Promise.all([new Response(child.stdout).text(), child.exited])
  const left = readdirSync(folder).filter((name) => !name.startsWith('.'))
  rmSync(folder, { recursive: true })
  return { code, stdout, left }
}

/** The probes with a mark (`ok`, `weak`, `FAIL`) in the output of doctor, or all of them. */
function probesIn(stdout: string, mark = '\\w+'): string[] {
  return Array.from(stdout.matchAll(new RegExp(`^  ${mark} +([a-z-]+)  `, 'gm')), ([, name = '']) => name)
}

const users = canBecomeNobody ? [false, true] : [false]

test.skipIf(!hasBubblewrap).each(users)(
  'doctor reports what this machine supports, no probe escapes, and no file is left (unprivileged: %p) (threat T39)',
  async (isNobody) => {
    const { code, stdout, left } = await runDoctor(isNobody, '')
    const isPrivileged = !isNobody && process.getuid?.() === 0
    for (const label of ['Programs', 'Data folder', 'Port', 'Isolation', 'Limits'])
      expect(stdout).toContain(`${label} `)
    expect(stdout).toMatch(/\d+ break-out attempts: \d+ blocked, \d+ blocked weakly, 0 succeeded\n$/)
    expect(stdout.includes('weak: one uid')).toBe(!isPrivileged)
    expect(probesIn(stdout)).toEqual([...PROBES])
    expect(probesIn(stdout, 'FAIL')).toEqual([])
    const known = isPrivileged ? [] : WEAK_WITHOUT_ROOT
    expect(probesIn(stdout, 'weak').filter((name) => !known.includes(name))).toEqual([])
    expect([code, left]).toEqual([0, []])
  },
)

test('doctor reports that sandboxes are not isolated when isolation is off', async () => {
  const { code, stdout } = await runDoctor(false, 'none')
  expect(stdout).toContain('weak: Sandboxes are not isolated from this machine')
  expect(stdout).not.toContain('break-out attempts')
  expect(code).toBe(0)
})

test.skipIf(!hasBubblewrap)('doctor finds bubblewrap independently of PATH, as sandboxes do', async () => {
  const { stdout } = await runDoctor(false, 'none', { PATH: '/nowhere' })
  expect(stdout).toMatch(/^Programs .*node missing.* bubblewrap \d/m)
})

test.skipIf((await findStarterProblem('root')) !== undefined)(
  'every probe fails without isolation (threat T39)',
  async () => {
    data = createDataFolder('root')
    const folders = ['/usr', '/lib', '/lib64'].flatMap((folder) => ['--ro-bind-try', folder, folder])
    // For the probe that looks for processes with another root.
    const other = Bun.spawn(['bwrap', '--die-with-parent', ...folders, '/usr/bin/sleep', '600'])
    // In its own mount namespace, because one of the probes mounts.
    const before = ['unshare', '--mount', '--propagation', 'private', '--']
    const child = Bun.spawn([...before, process.execPath, DOCTOR, data], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const reports: ProbeReport[] = await new Response(child.stdout).json()
    other.kill()
    const held = reports.filter(({ verdict }) => verdict === 'ok').map(({ name }) => name)
    expect(held.filter((name) => !NOT_HELD_BY_SANDBOX.includes(name))).toEqual([])
  },
  // Without a sandbox the probes reach no limit: they create every file and fill every byte they try.
  180_000,
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
  })

  test('detects an inherited environment', async () => {
    expect(await probe('neighbors', { env: { PROBE_TARGET: '1' } })).toContain(
      '"environment","verdict":"failed"',
    )
  })
})
