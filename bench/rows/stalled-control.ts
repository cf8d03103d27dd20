import { openRawWebSocketOrThrow } from '@sandwire/testing'
import type { RunningHost } from '../../test/e2e/support/control.ts'
import { readResidentBytes, traceMemory } from '../../test/e2e/support/memory.ts'
import { openParts } from '../competitors.ts'
import {
  createSandbox,
  findIsolationProblem,
  findSupervisor,
  findWorkerd,
  openHost,
} from '../peers/control-plane.ts'
import { attachStream } from '../peers/sandwire.ts'
import { below, type Row } from '../row.ts'

const SANDBOX = 'bench'

/** Transferred before the measurement, so that allocators have their buffers. */
const WARM_UP_BYTES = 512 * 1024 * 1024

/** Time for the queues to fill, and duration of the measurement. */
const FILL_MS = 2_000
const WATCH_MS = 10_000

const MEBIBYTE = 1024 * 1024

async function warmUp(host: RunningHost): Promise<void> {
  const argv = ['head', '-c', String(WARM_UP_BYTES), '/dev/zero']
  const stream = await attachStream({ ...host, sandbox: SANDBOX }, { argv, mode: 'pipe' })
  await stream.ended
}

async function watchGrowth(pid: number): Promise<number> {
  const before = readResidentBytes(pid)
  const { highest } = await traceMemory(pid, WATCH_MS)
  return (highest - before) / MEBIBYTE
}

async function measureStall(host: RunningHost, supervisorPid: number) {
  await warmUp(host)
  const { port, headers } = host
  const path = `/attach?sandbox=${SANDBOX}&cmd=yes`
  await using socket = await openRawWebSocketOrThrow({ port, headers, path })
  socket.pause()
  await Bun.sleep(FILL_MS)
  const [workerd, supervisor] = await Promise.all([
    watchGrowth(findWorkerd(host)),
    watchGrowth(supervisorPid),
  ])
  return { workerd, supervisor }
}

export const stalledControl: Row = {
  id: 'stalled-control',
  title: 'growth of control behind a stalled reader',
  unit: 'MiB',
  digits: 2,
  about: 'Growth over 10 s while `yes` writes and a socket is not read, after 512 MiB went through.',
  targets: [below('workerd', 1, 'MiB'), below('supervisor', 1, 'MiB')],
  open: async () => {
    const problem = findIsolationProblem()
    if (problem !== undefined) return [{ name: 'workerd', absent: problem }]
    return openHost(async (host) => {
      const supervisorPid = findSupervisor(host, await createSandbox(host, SANDBOX))
      return openParts({
        parts: ['workerd', 'supervisor'],
        measure: () => measureStall(host, supervisorPid),
        close: host.stop,
      })
    })
  },
}
