import { expect, test } from 'bun:test'
import { chownSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { AS_NOBODY, canBecomeNobody, NOBODY } from './support/nobody.ts'

const MAIN = resolve(import.meta.dir, '../../apps/host/src/main.ts')
const hasBubblewrap = Bun.which('bwrap') !== null

async function runDoctor(
  isNobody: boolean,
  isolation: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number; stdout: string; left: string[] }> {
  const folder = mkdtempSync('/tmp/up-doctor-')
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

const users = canBecomeNobody ? [false, true] : [false]

test.skipIf(!hasBubblewrap).each(users)(
  'doctor reports what this machine supports, runs every probe and leaves no files (unprivileged: %p) (threat T39)',
  async (isNobody) => {
    const { code, stdout, left } = await runDoctor(isNobody, '')
    for (const label of ['Programs', 'Data folder', 'Port', 'Isolation', 'Limits'])
      expect(stdout).toContain(`${label} `)
    expect(stdout).toMatch(/\d+ break-out attempts: \d+ blocked, \d+ blocked weakly, 0 succeeded\n$/)
    expect(stdout.includes('weak: one uid')).toBe(isNobody || process.getuid?.() !== 0)
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
