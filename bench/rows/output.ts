import { createHash } from 'node:crypto'
import { openControl, openPeer } from '../competitors.ts'
import { serveBareWebSocket } from '../peers/controls.ts'
import { readRaw } from '../peers/raw-read.ts'
import { sandwirePlain, sandwireV1 } from '../peers/sandwire.ts'
import { ssh } from '../peers/ssh.ts'
import type { Mode, Service } from '../peers/stream.ts'
import { throughControl } from '../peers/through-control.ts'
import { ttyd } from '../peers/ttyd.ts'
import { websocketd } from '../peers/websocketd.ts'
import { atLeast, type Competitor, type Row } from '../row.ts'
import type { Workload } from '../scratch.ts'

const PIPE_BYTES = 200_000_000
const PTY_BYTES = 30_000_000

/** Expected result of a measurement. */
interface Expected {
  readonly bytes: number
  /** Required share of the bytes; default all. */
  readonly share?: number
  /** Checked once per competitor and not timed: a digest costs as much as the transfer. */
  readonly sha256?: string
}

async function transfer(
  service: Service,
  onData: (bytes: Uint8Array) => void,
): Promise<{ bytes: number; ms: number }> {
  const startMs = performance.now()
  const stream = await service.connect()
  let bytes = 0
  stream.onData = (chunk) => {
    bytes += chunk.byteLength
    onData(chunk)
  }
  await stream.ended
  return { bytes, ms: performance.now() - startMs }
}

function megabytesPerSecond(bytes: number, ms: number): number {
  return bytes / 1e6 / (ms / 1000)
}

/** MB/s of one transfer. The first one is not timed but hashed. */
function createMeasure(expected: Expected): (service: Service) => Promise<number> {
  let isChecked = expected.sha256 === undefined
  return async (service) => {
    if (!isChecked) {
      const hash = createHash('sha256')
      await transfer(service, (chunk) => hash.update(chunk))
      const digest = hash.digest('hex')
      if (digest !== expected.sha256) throw new Error(`Got SHA-256 ${digest}, expected ${expected.sha256}`)
      isChecked = true
    }
    const { bytes, ms } = await transfer(service, () => {})
    const isEnough = bytes <= expected.bytes && bytes >= expected.bytes * (expected.share ?? 1)
    if (!isEnough) throw new Error(`Got ${bytes} bytes, expected ${expected.bytes}`)
    return megabytesPerSecond(bytes, ms)
  }
}

async function openBare(bytes: number): Promise<Competitor> {
  const service = await serveBareWebSocket(`/flood?bytes=${bytes}`)
  const measure = async (): Promise<number> => {
    const startMs = performance.now()
    const stream = await service.connect()
    const all = Promise.withResolvers<void>()
    let received = 0
    stream.onData = (chunk) => {
      received += chunk.byteLength
      if (received === bytes) all.resolve()
    }
    await all.promise
    stream.close()
    return megabytesPerSecond(bytes, performance.now() - startMs)
  }
  return {
    name: 'bare WebSocket',
    side: 'control',
    measure,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

function openRaw(mode: Mode, { file }: Workload, expectedBytes: number): Competitor {
  return openControl(`raw ${mode}`, async () => {
    const startMs = performance.now()
    const bytes = await readRaw(['cat', file], mode)
    if (bytes !== expectedBytes) throw new Error(`Got ${bytes} bytes, expected ${expectedBytes}`)
    return megabytesPerSecond(bytes, performance.now() - startMs)
  })
}

export const outputPipe: Row = {
  id: 'output-pipe',
  title: 'output, pipe',
  unit: 'MB/s',
  about:
    '200 MB of text by `cat` on a pipe, from connect to the end of output; byte count and SHA-256 checked.',
  targets: ['sandwire', throughControl.name].flatMap((ours) => [
    atLeast(ours, 'websocketd'),
    atLeast(ours, 'ssh', 3),
  ]),
  open: async ({ scratch }) => {
    const workload = await scratch.workload(PIPE_BYTES)
    const command = { argv: ['cat', workload.file] as const, mode: 'pipe' as const, files: [workload.file] }
    const peers = [sandwireV1, sandwirePlain, throughControl, websocketd, ssh]
    return [
      openRaw('pipe', workload, workload.bytes),
      await openBare(workload.bytes),
      ...(await Promise.all(peers.map((peer) => openPeer(peer, command, createMeasure(workload))))),
    ]
  },
}

export const outputPty: Row = {
  id: 'output-pty',
  title: 'output, terminal',
  unit: 'MB/s',
  about: '30 MB of text by `cat` on a terminal; the line ends it adds are counted and checked.',
  targets: ['sandwire', throughControl.name].flatMap((ours) => [
    atLeast(ours, 'raw pty', 0.7),
    atLeast(ours, 'ttyd'),
  ]),
  open: async ({ scratch }) => {
    const workload = await scratch.workload(PTY_BYTES)
    const command = { argv: ['cat', workload.file] as const, mode: 'pty' as const, files: [workload.file] }
    const expected = { bytes: workload.terminalBytes }
    const ours = [sandwireV1, sandwirePlain, throughControl, ssh]
    return [
      openRaw('pty', workload, workload.terminalBytes),
      ...(await Promise.all(ours.map((peer) => openPeer(peer, command, createMeasure(expected))))),
      // ttyd loses the end of the output in most runs; the received bytes are timed.
      await openPeer(ttyd, command, createMeasure({ ...expected, share: 0.99 })),
    ]
  },
}
