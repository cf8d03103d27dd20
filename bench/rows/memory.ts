import { openRawWebSocketOrThrow, readProcessMemory } from '@sandwire/testing'
import { attach } from '@sandwire/client'
import { startBenchedSandboxd, sandwireV1, sandwirePlain } from '../peers/sandwire.ts'
import type { Mode, Peer, Stream } from '../peers/stream.ts'
import { ttyd } from '../peers/ttyd.ts'
import { websocketd } from '../peers/websocketd.ts'
import { type Absent, below, type Competitor, type Row } from '../row.ts'

/** Number of open sessions. */
const SESSIONS = 200

/** Time for a server to become idle. */
const REST_MS = 1_500

/** How long the reader stalls before and during the measurement. */
const STALL_WARM_UP_MS = 2_000
const STALL_MS = 5_000

const KIBIBYTE = 1024
const MEBIBYTE = 1024 * 1024

function pss(pid: number): number {
  return readProcessMemory(pid).pssBytes
}

/** Memory of the server per idle session, without the child process. */
async function measureIdle(peer: Peer, mode: Mode): Promise<number> {
  await using service = await peer.serve(['cat'], mode)
  const streams: Stream[] = []
  const openMany = async (count: number): Promise<void> => {
    for (let left = count; left > 0; left -= 1) streams.push(await service.connect())
    await Bun.sleep(REST_MS)
  }
  // The first sessions load shared code, pools and arenas.
  await openMany(SESSIONS / 4)
  const before = pss(service.pid)
  await openMany(SESSIONS)
  const growth = pss(service.pid) - before
  for (const stream of streams) stream.close()
  return growth / SESSIONS / KIBIBYTE
}

function openIdlePeer(peer: Peer, mode: Mode): Competitor | Absent {
  if (peer.problem !== undefined) return { name: peer.name, absent: peer.problem }
  const side = peer.name.startsWith('sandwire') ? 'ours' : 'peer'
  return {
    name: peer.name,
    side,
    measure: () => measureIdle(peer, mode),
    [Symbol.asyncDispose]: async () => {},
  }
}

function createIdleRow(mode: Mode, peers: readonly Peer[]): Row {
  return {
    id: `idle-${mode}`,
    title: `memory per idle session, ${mode === 'pipe' ? 'pipe' : 'terminal'}`,
    unit: 'KiB',
    about: `Growth of the server's PSS over ${SESSIONS} attached sessions that do nothing, divided by their number.`,
    targets: [below('sandwire', 64, 'KiB')],
    open: async () => peers.map((peer) => openIdlePeer(peer, mode)),
  }
}

export const idlePipe = createIdleRow('pipe', [sandwireV1, sandwirePlain, websocketd])
export const idlePty = createIdleRow('pty', [sandwireV1, sandwirePlain, ttyd])

/** Growth while the output of an endless writer is not read, after the buffers are full. */
async function watchGrowth(pid: number): Promise<number> {
  await Bun.sleep(STALL_WARM_UP_MS)
  const before = pss(pid)
  let most = before
  const endMs = performance.now() + STALL_MS
  while (performance.now() < endMs) {
    await Bun.sleep(100)
    most = Math.max(most, pss(pid))
  }
  return (most - before) / MEBIBYTE
}

async function measureStalledConsumer(): Promise<number> {
  await using sandboxd = await startBenchedSandboxd()
  const handle = attach({
    url: sandboxd.url,
    request: { cmd: 'yes', mode: 'pipe' },
    credentials: async () => ({ headers: sandboxd.headers }),
    onOutput: () => new Promise(() => {}),
  })
  const growth = await watchGrowth(sandboxd.pid)
  handle.detach()
  return growth
}

async function measureStalledSocket(): Promise<number> {
  await using sandboxd = await startBenchedSandboxd()
  const { port, headers, pid } = sandboxd
  await using socket = await openRawWebSocketOrThrow({ port, path: '/attach?cmd=yes', headers })
  socket.pause()
  return await watchGrowth(pid)
}

async function measureStalledWebsocketd(): Promise<number> {
  await using service = await websocketd.serve(['yes'], 'pipe')
  await using socket = await openRawWebSocketOrThrow({ port: service.port })
  socket.pause()
  return await watchGrowth(service.pid)
}

function stalled(name: string, side: Competitor['side'], measure: () => Promise<number>): Competitor {
  return { name, side, measure, [Symbol.asyncDispose]: async () => {} }
}

export const stalledReader: Row = {
  id: 'stalled-reader',
  title: 'growth behind a stalled reader',
  unit: 'MiB',
  digits: 1,
  about: 'Growth of the server over 5 s while `yes` writes and nobody reads, after 2 s of warm-up.',
  targets: [below('sandwire', 8, 'MiB')],
  open: async () => [
    stalled('sandwire', 'ours', measureStalledConsumer),
    stalled('sandwire plain', 'ours', measureStalledSocket),
    websocketd.problem === undefined
      ? stalled('websocketd', 'peer', measureStalledWebsocketd)
      : { name: websocketd.name, absent: websocketd.problem },
  ],
}
