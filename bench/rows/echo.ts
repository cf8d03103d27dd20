import type { RunningHost } from '../../test/e2e/support/control.ts'
import { openControl, openPeer } from '../competitors.ts'
import { createSandbox, findIsolationProblem, openHost } from '../peers/control-plane.ts'
import { serveBareWebSocket } from '../peers/controls.ts'
import { echoRaw } from '../peers/raw-read.ts'
import { attachStream, sandwirePlain, sandwireV1 } from '../peers/sandwire.ts'
import { buildSbxStdio, createSbxStdio } from '../peers/sbx-stdio.ts'
import { ssh } from '../peers/ssh.ts'
import { awaitText, type Mode, type Service, type Stream } from '../peers/stream.ts'
import { throughControl } from '../peers/through-control.ts'
import { ttyd } from '../peers/ttyd.ts'
import { websocketd } from '../peers/websocketd.ts'
import { atMost, type Competitor, type Row } from '../row.ts'
import { quantile } from '../statistics.ts'

/** Round trips per measurement, after the warm-up. */
const TRIPS = 2_000
const WARM_UP_TRIPS = 300

/** Timeout of a round trip. */
const TIMEOUT_MS = 20_000

const KEY = new Uint8Array([0x78])

/** Times sequential round trips of one byte, as in typing. */
function timeTrips(stream: Stream): Promise<number[]> {
  const { promise, resolve, reject } = Promise.withResolvers<number[]>()
  const times: number[] = []
  let startMs = 0
  let left = TRIPS + WARM_UP_TRIPS
  const send = (): void => {
    startMs = performance.now()
    stream.write(KEY)
  }
  stream.onData = (bytes) => {
    if (bytes.byteLength !== 1) return reject(new Error(`Got ${bytes.byteLength} bytes for one key`))
    left -= 1
    if (left < TRIPS) times.push(performance.now() - startMs)
    if (left > 0) send()
    else resolve(times)
  }
  setTimeout(() => reject(new Error(`Timed out after ${times.length} round trips`)), TIMEOUT_MS).unref()
  send()
  return promise
}

/** Median round trip of one byte in microseconds; on a terminal, once the process has printed `ready`. */
export async function measureEcho(service: Pick<Service, 'connect'>, mode: Mode): Promise<number> {
  const stream = await service.connect()
  if (mode === 'pty') await awaitText(stream, 'ready')
  const times = await timeTrips(stream)
  stream.close()
  return quantile(times, 0.5) * 1000
}

async function openBare(): Promise<Competitor> {
  const service = await serveBareWebSocket('/echo')
  return {
    name: 'bare WebSocket',
    side: 'control',
    measure: () => measureEcho(service, 'pipe'),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

function openEcho(mode: Mode): Row['open'] {
  // The program echoes, not the terminal, so that both directions are measured.
  const argv =
    mode === 'pipe' ? (['cat'] as const) : (['sh', '-c', 'stty raw -echo; printf ready; exec cat'] as const)
  return async ({ scratch }) => {
    const client = createSbxStdio(buildSbxStdio(scratch))
    const peers = [
      sandwireV1,
      sandwirePlain,
      throughControl,
      client,
      mode === 'pipe' ? websocketd : ttyd,
      ssh,
    ]
    return [
      openControl(`raw ${mode}`, async () => quantile(await echoRaw(mode, TRIPS), 0.5) * 1000),
      await openBare(),
      ...(await Promise.all(
        peers.map((peer) => openPeer(peer, { argv, mode }, (service) => measureEcho(service, mode))),
      )),
    ]
  }
}

const AT_REST = 'without saves'
const BESIDE_SAVES = 'beside saves'
const SANDBOX = 'bench'

/** Changes 30 MiB and saves them, again and again, until it is disposed. */
function saveRepeatedly(host: RunningHost): AsyncDisposable {
  let isEnded = false
  const post = async (path: string, body: object): Promise<void> => {
    const response = await host.fetch(`/api/sandboxes/${SANDBOX}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`Cannot POST ${path}: ${await response.text()}`)
    await response.body?.cancel()
  }
  const running = (async () => {
    while (!isEnded) {
      await post('exec', { cmd: 'sh', args: ['-c', 'head -c 31457280 /dev/urandom > changed'] })
      await post('checkpoints', {})
    }
  })()
  return {
    [Symbol.asyncDispose]: async () => {
      isEnded = true
      await running
    },
  }
}

export const echoBesideSave: Row = {
  id: 'echo-save',
  title: 'echo beside saves, terminal',
  unit: 'µs',
  about:
    'Median time of one byte through `cat` on a terminal and back, through control, while 30 MiB in the same sandbox are changed and saved again and again.',
  targets: [atMost(BESIDE_SAVES, AT_REST, 1.2)],
  open: async () => {
    const problem = findIsolationProblem()
    if (problem !== undefined) return [{ name: BESIDE_SAVES, absent: problem }]
    return openHost(async (host) => {
      await createSandbox(host, SANDBOX)
      const argv = ['sh', '-c', 'stty raw -echo; printf ready; exec cat']
      const service = {
        connect: () => attachStream({ ...host, sandbox: SANDBOX }, { argv, mode: 'pty' }),
      }
      const atRest: Competitor = {
        name: AT_REST,
        side: 'control',
        measure: () => measureEcho(service, 'pty'),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
      const beside: Competitor = {
        name: BESIDE_SAVES,
        side: 'ours',
        measure: async () => {
          await using _ = saveRepeatedly(host)
          return await measureEcho(service, 'pty')
        },
        [Symbol.asyncDispose]: host.stop,
      }
      return [atRest, beside]
    })
  },
}

export const echoPipe: Row = {
  id: 'echo-pipe',
  title: 'echo, pipe',
  unit: 'µs',
  about: 'Median time of one byte through `cat` and back, 2,000 times one after the other.',
  targets: [atMost('sandwire', 'websocketd'), atMost(throughControl.name, 'ssh', 1.2)],
  open: openEcho('pipe'),
}

export const echoPty: Row = {
  id: 'echo-pty',
  title: 'echo, terminal',
  unit: 'µs',
  about: 'The same through `cat` on a terminal in raw mode.',
  targets: [atMost('sandwire', 'ttyd'), atMost('sandwire', 'ssh'), atMost(throughControl.name, 'ssh', 1.2)],
  open: openEcho('pty'),
}
