import { expect, test } from 'bun:test'
import { usageRows } from './usage-rows.ts'

test('shows each resource that the server counts, in its own unit', () => {
  const account = {
    storedBytes: { used: 1024 ** 3, limit: 4 * 1024 ** 3 },
    diskBytes: { used: 3 * 1024 ** 3, limit: null },
    sandboxes: { used: 3, limit: 100 },
    running: { used: 1, limit: 5 },
    sessions: { used: 2, limit: null },
    milliCpus: { used: 1_500, limit: 8_000 },
  }
  expect(usageRows({ account, sandbox: { networks: ['none'] } })).toEqual([
    { name: 'Sandboxes', used: '3', limit: '100' },
    { name: 'Running sandboxes', used: '1', limit: '5' },
    { name: 'Sessions', used: '2', limit: 'No limit' },
    { name: 'CPUs of running sandboxes', used: '1.5', limit: '8' },
    { name: 'Disk', used: '3.0 GiB', limit: 'No limit' },
    { name: 'Saved files and runs', used: '1.0 GiB', limit: '4.0 GiB' },
  ])
})
