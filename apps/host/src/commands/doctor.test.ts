import { expect, test } from 'bun:test'
import { formatProbeReports, formatFindings, type DoctorFacts } from './doctor.ts'

const FACTS: DoctorFacts = {
  programs: [
    ['bun', '1.4.4'],
    ['bubblewrap', null],
  ],
  data: { folder: '/data', problem: null, freeBytes: 3 * 1024 ** 3, holder: 'process 7' },
  port: { number: 8787, problem: 'the port is in use' },
  identity: [
    { line: "this machine's user", isGood: true },
    { line: 'Auth0: does not answer', isGood: false },
  ],
  isolation: 'none',
  weaknesses: ['no limits'],
  notice: 'Sandboxes are not isolated',
  limits: { processes: 'cgroup v2', disk: 'watchdog' },
}

test('formats the findings, each weakness on a line', () => {
  expect(formatFindings(FACTS)).toBe(`Programs     bun 1.4.4, bubblewrap missing
Data folder  /data (3.0 GiB free, used by process 7)
Port         8787 cannot be used: the port is in use
Identity     this machine's user
             problem: Auth0: does not answer
Isolation    none
             weak: Sandboxes are not isolated
             weak: no limits
Limits       processes by cgroup v2, disk by watchdog
`)
})

test('names an unusable data folder and the reason', () => {
  const data = { ...FACTS.data, problem: 'it is read-only' }
  expect(formatFindings({ ...FACTS, data })).toContain('Data folder  /data cannot be used: it is read-only\n')
})

test('formats every probe and a summary', () => {
  const text = formatProbeReports([
    { name: 'mount', verdict: 'ok', line: 'refused' },
    { name: 'disk-limit', verdict: 'weak', line: 'late' },
    { name: 'bpf', verdict: 'failed', line: 'allowed' },
  ])
  expect(text).toBe(`  ok    mount       refused
  weak  disk-limit  late
  FAIL  bpf         allowed
3 break-out attempts: 1 blocked, 1 blocked weakly, 1 succeeded
`)
})
