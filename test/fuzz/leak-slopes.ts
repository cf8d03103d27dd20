import { attach } from '@sandwire/client'
import { Deployment } from '../e2e/support/deployment.ts'
import { readResidentBytes } from '../e2e/support/memory.ts'
import { openBareForward } from './bare-forward.ts'

const SANDBOX = 'slopes'
type Program = 'workerd' | 'host' | 'sandboxd'

/** Memory is sampled after each batch. */
const BATCHES = 20
/** Concurrent operations. */
const LANES = 8
/** A file for `put` and `get`. */
const FILE = `/api/workspaces/${SANDBOX}/file?path=slope.bin`
const FILE_BYTES = 16 * 1024
/** Garbage collectors return memory late. */
const SETTLE_MS = 500

export interface Slope {
  readonly operation: string
  /** `bare workerd`: the baseline without our code. */
  readonly program: Program | 'bare workerd'
  readonly firstBytes: number
  readonly lastBytes: number
  /** Growth within the second half of the run: caches and heaps have filled by then, a leak goes on. */
  readonly lateGrowthBytes: number
  /** The same per operation. */
  readonly bytesPerOperation: number
}

/** Slope of the least-squares line through the samples, per step. */
function slopeOf(samples: readonly number[]): number {
  const meanX = (samples.length - 1) / 2
  const meanY = samples.reduce((sum, each) => sum + each, 0) / samples.length
  let above = 0
  let below = 0
  for (const [x, y] of samples.entries()) {
    above += (x - meanX) * (y - meanY)
    below += (x - meanX) ** 2
  }
  return below === 0 ? 0 : above / below
}

/** Repeats a request that came faster than the server allows. */
async function succeed(send: () => Promise<Response>): Promise<void> {
  for (;;) {
    const response = await send()
    const text = await response.text()
    if (response.ok) return
    if (response.status !== 429) throw new Error(`${response.url} answered ${response.status}: ${text}`)
    await Bun.sleep(Number(response.headers.get('retry-after') ?? 1) * 1000)
  }
}

/** Attaches to a running session and detaches. */
async function attachOnce({ host }: Deployment, session: string): Promise<void> {
  const { url, headers } = host
  const attached = Promise.withResolvers<void>()
  const handle = attach({
    url,
    request: { session },
    credentials: async () => ({ headers }),
    onOutput: () => undefined,
  })
  handle.exit.catch(attached.reject)
  handle.status.subscribe((status) => {
    if (status.kind === 'attached') attached.resolve()
  })
  await attached.promise
  handle.detach()
}

type OnBatch = (operation: string, done: number) => void

/** Repeats an operation in batches, and measures how the memory of the programs grows. */
async function measureOperation<Name extends Slope['program']>(
  { name, times, run }: { readonly name: string; readonly times: number; readonly run: () => Promise<void> },
  pids: Readonly<Record<Name, number>>,
  onBatch: OnBatch,
): Promise<Slope[]> {
  const programs = Object.keys(pids) as Name[]
  const samples = new Map<Name, number[]>(programs.map((program) => [program, []]))
  const perBatch = Math.ceil(times / BATCHES)
  for (let batch = 0; batch < BATCHES; batch += 1) {
    let left = perBatch
    const lane = async (): Promise<void> => {
      while (left-- > 0) await run()
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    await Bun.sleep(SETTLE_MS)
    for (const [program, all] of samples) all.push(readResidentBytes(pids[program]))
    onBatch(name, (batch + 1) * perBatch)
  }
  return [...samples].map(([program, all]) => {
    const slope = slopeOf(all.slice(BATCHES / 2))
    return {
      operation: name,
      program,
      firstBytes: all[0] ?? 0,
      lastBytes: all.at(-1) ?? 0,
      lateGrowthBytes: (slope * BATCHES) / 2,
      bytesPerOperation: slope / perBatch,
    }
  })
}

/** Repeats attach, exec, PUT and GET, and measures how the memory of each program grows. `count`: attaches; a tenth of it are execs. */
export async function measureLeakSlopes(
  count: number,
  onBatch: OnBatch = () => undefined,
): Promise<readonly Slope[]> {
  const body = crypto.getRandomValues(new Uint8Array(FILE_BYTES))
  return [...(await measureBareForward(count, body, onBatch)), ...(await measureServer(count, body, onBatch))]
}

/** Opens a connection and closes it. */
async function connectOnce(url: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = new WebSocket(url)
  socket.addEventListener('open', () => socket.close())
  socket.addEventListener('close', () => resolve())
  socket.addEventListener('error', () => reject(new Error('Cannot connect')))
  await promise
}

async function measureBareForward(
  times: number,
  body: Uint8Array<ArrayBuffer>,
  onBatch: OnBatch,
): Promise<Slope[]> {
  await using bare = await openBareForward(body)
  const { url, workerd } = bare
  const operations = [
    { name: 'attach', times, run: () => connectOnce(url.replace('http', 'ws')) },
    { name: 'PUT', times, run: () => succeed(() => fetch(url, { method: 'PUT', body, keepalive: false })) },
    { name: 'GET', times, run: () => succeed(() => fetch(url, { keepalive: false })) },
  ]
  const slopes: Slope[] = []
  for (const operation of operations)
    slopes.push(...(await measureOperation(operation, { 'bare workerd': workerd }, onBatch)))
  return slopes
}

async function measureServer(
  count: number,
  body: Uint8Array<ArrayBuffer>,
  onBatch: OnBatch,
): Promise<Slope[]> {
  await using deployment = await Deployment.open()
  const { id } = await deployment.create(SANDBOX)
  const pids: Readonly<Record<Program, number>> = {
    workerd: deployment.workerd ?? 0,
    host: deployment.host.pid,
    sandboxd: deployment.sandboxd(id),
  }
  const json = { 'content-type': 'application/json' }
  const post = (tail: string, content: object): Promise<Response> =>
    deployment.fetch(`/api/sandboxes/${SANDBOX}/${tail}`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify(content),
    })
  const started = (await (await post('sessions', { cmd: 'cat' })).json()) as { id: string }
  const operations: readonly { name: string; times: number; run: () => Promise<void> }[] = [
    { name: 'attach', times: count, run: () => attachOnce(deployment, started.id) },
    { name: 'exec', times: Math.ceil(count / 10), run: () => succeed(() => post('exec', { cmd: 'true' })) },
    { name: 'PUT', times: count, run: () => succeed(() => deployment.fetch(FILE, { method: 'PUT', body })) },
    { name: 'GET', times: count, run: () => succeed(() => deployment.fetch(FILE)) },
  ]
  const slopes: Slope[] = []
  for (const operation of operations) slopes.push(...(await measureOperation(operation, pids, onBatch)))
  return slopes
}
