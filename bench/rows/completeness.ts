import { openPeer } from '../competitors.ts'
import { sandwirePlain, sandwireV1 } from '../peers/sandwire.ts'
import { ssh } from '../peers/ssh.ts'
import type { Mode, Peer, Service } from '../peers/stream.ts'
import { ttyd } from '../peers/ttyd.ts'
import { websocketd } from '../peers/websocketd.ts'
import { below, type Row } from '../row.ts'

const OUR_RUNS = 1_000
/** A new ssh takes ten times as long as a WebSocket. */
const PEER_RUNS = 200
/** Concurrent runs. */
const PARALLEL = 4

const SCRIPT = 'seq 1 20000; exit 42'
/** 108,894 digits and line ends; a terminal adds one byte per line. */
const BYTES: Readonly<Record<Mode, number>> = { pipe: 108_894, pty: 128_894 }

/** Incomplete runs of 1,000. */
async function measureMissing(service: Service, mode: Mode, runs: number): Promise<number> {
  let started = 0
  let short = 0
  const work = async (): Promise<void> => {
    while (started < runs) {
      started += 1
      const stream = await service.connect()
      let bytes = 0
      stream.onData = (chunk) => {
        bytes += chunk.byteLength
      }
      await stream.ended
      if (bytes !== BYTES[mode]) short += 1
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, work))
  return (short / runs) * 1_000
}

function createRow(mode: Mode, peers: readonly Peer[]): Row {
  const title = mode === 'pipe' ? 'pipe' : 'terminal'
  return {
    id: `complete-${mode}`,
    title: `short at exit, ${title}`,
    unit: 'of 1,000',
    rounds: 1,
    about: `Runs of \`${SCRIPT}\` whose output came short, of 1,000 (peers: of ${PEER_RUNS}, scaled).`,
    targets: [below('sandwire', 0, '')],
    open: () =>
      Promise.all(
        peers.map((peer) => {
          const runs = peer.name.startsWith('sandwire') ? OUR_RUNS : PEER_RUNS
          const command = { argv: ['sh', '-c', SCRIPT] as const, mode }
          return openPeer(peer, command, (service) => measureMissing(service, mode, runs))
        }),
      ),
  }
}

export const completePipe = createRow('pipe', [sandwireV1, sandwirePlain, websocketd, ssh])
export const completePty = createRow('pty', [sandwireV1, sandwirePlain, ttyd, ssh])
