import { openControl, openPeer } from '../competitors.ts'
import { readRaw } from '../peers/raw-read.ts'
import { sandwirePlain, sandwireV1 } from '../peers/sandwire.ts'
import { ssh } from '../peers/ssh.ts'
import { collect, type Service } from '../peers/stream.ts'
import { websocketd } from '../peers/websocketd.ts'
import { atMost, type Row } from '../row.ts'
import { median } from '../statistics.ts'

/** Connections per measurement. */
const TIMES = 20

const COMMAND = { argv: ['echo', 'hello'], mode: 'pipe' } as const

async function repeat(once: () => Promise<void>): Promise<number> {
  const times: number[] = []
  for (let left = TIMES; left > 0; left -= 1) {
    const startMs = performance.now()
    await once()
    times.push(performance.now() - startMs)
  }
  return median(times)
}

async function measureConnect(service: Service): Promise<number> {
  return repeat(async () => {
    const stream = await service.connect()
    await collect(stream, 6)
    stream.close()
  })
}

export const connect: Row = {
  id: 'connect',
  title: 'connect, start, first byte',
  unit: 'ms',
  digits: 1,
  about:
    'From nothing to the output of `echo`: connection, credentials, process. ssh exchanges keys, the others do not.',
  targets: [atMost('sandwire', 'ssh')],
  open: async () => [
    openControl('spawn', () =>
      repeat(async () => {
        await readRaw(COMMAND.argv, 'pipe')
      }),
    ),
    ...(await Promise.all(
      [sandwireV1, sandwirePlain, websocketd, ssh].map((peer) => openPeer(peer, COMMAND, measureConnect)),
    )),
  ],
}
