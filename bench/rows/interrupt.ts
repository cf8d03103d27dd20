import { openFaultProxy } from '@sandwire/testing'
import { openPeer } from '../competitors.ts'
import { sandwirePlain, sandwireV1 } from '../peers/sandwire.ts'
import { ssh } from '../peers/ssh.ts'
import { awaitText, type Service } from '../peers/stream.ts'
import { ttyd } from '../peers/ttyd.ts'
import { below, type Row } from '../row.ts'

/** Long enough for queues to fill. */
const FLOOD_MS = 2_500

const CONTROL_C = new Uint8Array([0x03])

/** Printed by the program after the interrupt. */
const MARKER = '<interrupted>'

async function measureInterrupt(service: Service, bytesPerSecond: number): Promise<number> {
  await using proxy = openFaultProxy({ target: service })
  proxy.setFaults({ toClient: { rateBytesPerSecond: bytesPerSecond } })
  const stream = await service.connectVia(proxy.port)
  await Bun.sleep(FLOOD_MS)
  const marked = awaitText(stream, MARKER)
  const startMs = performance.now()
  stream.write(CONTROL_C)
  await marked
  const ms = performance.now() - startMs
  stream.close()
  return ms
}

function createRow(bytesPerSecond: number, name: string, rounds?: number): Row {
  return {
    ...(rounds === undefined ? {} : { rounds }),
    id: `interrupt-${name.replace(' ', '-').replace('/s', '').toLowerCase()}`,
    title: `Ctrl-C at ${name}`,
    unit: 'ms',
    about: `From Ctrl-C during a flood of text on a terminal to the program's answer on the screen, over a link of ${name}.`,
    targets: [below('sandwire', bytesPerSecond >= 1_000_000 ? 150 : 1_000, 'ms')],
    open: async ({ scratch }) => {
      const { file } = await scratch.workload(30_000_000)
      // Does not exit, because some peers drop the last output of a process that exits.
      const script = `trap 'echo "${MARKER}"; exec sleep 60' INT; while :; do cat ${file}; done`
      const command = { argv: ['sh', '-c', script] as const, mode: 'pty' as const }
      const measure = (service: Service) => measureInterrupt(service, bytesPerSecond)
      return Promise.all(
        [sandwireV1, sandwirePlain, ttyd, ssh].map((peer) => openPeer(peer, command, measure)),
      )
    },
  }
}

export const interruptFast = createRow(1_000_000, '1 MB/s')
/** Other programs need most of a minute to drain at this rate, hence fewer rounds. */
export const interruptSlow = createRow(100_000, '100 KB/s', 3)
