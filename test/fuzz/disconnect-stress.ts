import { createHash } from 'node:crypto'
import {
  eventually,
  type FaultProxy,
  openFaultProxy,
  patternAt,
  Random,
  verifyPattern,
} from '@sandwire/testing'
import { attach, type AttachHandle } from '@sandwire/client'
import { readShell } from '../e2e/support/attached.ts'
import type { WireServer } from '../e2e/support/wire-server.ts'

/** Input per write: odd, so that disconnects fall anywhere within frames. */
const BLOCK_BYTES = 7_919
/** Time one resume may take on a loaded machine. */
const RESUME_MS = 30_000
/** Time for a disconnect to be noticed before the next one is made. */
const DISCONNECT_MS = 3_000
const MAX_ATTEMPTS = 5
const READY = '<ready>'

export interface DisconnectStressOptions {
  readonly server: WireServer
  readonly mode: 'pipe' | 'pty'
  readonly seed: number
  readonly disconnects: number
  /** Called after every disconnect. */
  readonly onDisconnect?: (done: number) => void
}

export interface DisconnectStressResult {
  readonly disconnects: number
  readonly bytesEachWay: number
  /** Digests of the bytes written, read by the process, and echoed. */
  readonly written: string
  readonly read: string
  readonly returned: string
}

/** A stream through a process that stores its input and echoes it; the echo is verified byte by byte. */
class Echo {
  readonly handle: AttachHandle
  reconnections = 0
  returnedBytes = 0
  writtenBytes = 0
  isReady: boolean
  fault: Error | undefined
  readonly #seed: number
  readonly #returned = createHash('sha256')
  readonly #written = createHash('sha256')
  #preamble = ''

  constructor(options: DisconnectStressOptions, port: number, file: string) {
    const { server, mode, seed } = options
    this.#seed = seed
    this.isReady = mode === 'pipe'
    const script = mode === 'pty' ? `stty raw -echo; printf '${READY}'; exec tee ${file}` : `exec tee ${file}`
    this.handle = attach({
      url: `http://127.0.0.1:${port}`,
      request: {
        cmd: 'sh',
        args: ['-c', script],
        mode,
        overflow: 'block',
        ...(server.sandbox !== undefined && { sandbox: server.sandbox }),
      },
      credentials: async () => ({ headers: { ...server.headers, host: `127.0.0.1:${server.port}` } }),
      heartbeatMs: 500,
      onOutput: (_, bytes) => this.#receive(bytes),
      onGap: (from, to) => (this.fault = new Error(`Gap from ${from} to ${to}`)),
    })
    this.handle.status.subscribe((status) => {
      if (status.kind === 'reconnecting') this.reconnections++
      if (status.kind === 'failed') this.fault = status.error
    })
  }

  get digests(): { readonly written: string; readonly returned: string } {
    return { written: this.#written.copy().digest('hex'), returned: this.#returned.copy().digest('hex') }
  }

  async write(bytes: number): Promise<void> {
    const block = patternAt(this.#seed, this.writtenBytes, bytes)
    this.writtenBytes += bytes
    this.#written.update(block)
    await this.handle.write(block)
  }

  #receive(bytes: Uint8Array): void {
    if (!this.isReady) {
      this.#preamble += new TextDecoder().decode(bytes)
      this.isReady = this.#preamble === READY
      return
    }
    const mismatch = verifyPattern(this.#seed, this.returnedBytes, bytes)
    if (mismatch !== undefined) this.fault ??= new Error(`Wrong byte at ${mismatch.offset}`)
    this.returnedBytes += bytes.byteLength
    this.#returned.update(bytes)
  }
}

/** Breaks the connection at random and returns a description of the fault. */
function breakConnection(proxy: FaultProxy, random: Random, { breakBehindControl }: WireServer): string {
  proxy.setFaults({ toClient: {}, toTarget: {} })
  if (breakBehindControl !== undefined && random.int(0, 1) === 0) {
    breakBehindControl()
    return 'behind control'
  }
  const direction = random.pick(['toClient', 'toTarget'] as const)
  const kind = random.pick(['reset', 'fin', 'half'] as const)
  const method = random.pick(['now', 'later', 'twice', 'sliced', 'hole', 'late'] as const)
  switch (method) {
    case 'now':
      proxy.disconnectAll(kind, direction)
      break
    case 'later':
      proxy.disconnectAfterBytes(direction, random.int(1, 100_000), kind)
      break
    case 'twice':
      // The second one hits the upgrade, hello or welcome of the next connection.
      proxy.disconnectAll(kind, direction)
      proxy.disconnectAfterBytes(direction, random.int(1, 1_500), kind)
      break
    case 'sliced':
      // Single bytes, a thousand a second; the disconnect comes after a delay.
      proxy.setFaults({ [direction]: { sliceBytes: 1 } })
      setTimeout(() => proxy.disconnectAll(kind, direction), random.int(0, 60))
      break
    case 'hole':
      // Discards what is in flight before the reset.
      proxy.setFaults({ toClient: { blackHole: true }, toTarget: { blackHole: true } })
      setTimeout(() => proxy.disconnectAll('reset'), random.int(0, 30))
      break
    case 'late':
      proxy.setFaults({ [direction]: { latencyMs: random.int(1, 5) } })
      proxy.disconnectAll(kind, direction)
  }
  return `${method} ${kind} ${direction}`
}

/** Disconnects an attachment repeatedly during transfers both ways, then compares the three digests. */
export async function runDisconnectStress(options: DisconnectStressOptions): Promise<DisconnectStressResult> {
  const { server, seed, disconnects, onDisconnect } = options
  const random = new Random(seed)
  const file = `stress-${seed}-${options.mode}`
  await using proxy = openFaultProxy({ target: { port: server.port }, random: random.fork() })
  const echo = new Echo(options, proxy.port, file)
  let done = 0
  let fault = 'nothing'
  const wait = async (what: string, check: () => boolean) => {
    try {
      await eventually(() => echo.fault !== undefined || check(), { what, timeoutMs: RESUME_MS })
    } catch (error) {
      echo.fault ??= error instanceof Error ? error : new Error(String(error))
    }
    if (echo.fault === undefined) return
    const { writtenBytes, returnedBytes, handle } = echo
    const open = proxy.connections.map(({ id, heldBytes, bytesToClient, bytesToTarget }) => ({
      id,
      heldBytes,
      bytesToClient,
      bytesToTarget,
    }))
    const state = JSON.stringify({
      fault,
      done,
      writtenBytes,
      returnedBytes,
      status: handle.status.get(),
      open,
      stats: proxy.stats,
    })
    throw new Error(`Cannot continue with seed ${seed}: ${state}`, { cause: echo.fault })
  }
  await wait('the process', () => echo.isReady && echo.handle.status.get().kind === 'attached')
  let isRunning = true
  const writing = (async () => {
    while (isRunning) await echo.write(BLOCK_BYTES)
  })()
  while (done < disconnects) {
    const { reconnections, returnedBytes } = echo
    const isDisconnected = () => echo.reconnections > reconnections
    for (let attempt = 0; attempt < MAX_ATTEMPTS && !isDisconnected(); attempt++) {
      // Has no effect while the connection is down.
      fault = breakConnection(proxy, random, server)
      await eventually(isDisconnected, { what: 'the disconnect', timeoutMs: DISCONNECT_MS }).catch(() => {})
    }
    await wait('the disconnect', isDisconnected)
    proxy.setFaults({ toClient: {}, toTarget: {} })
    await wait('the resume', () => echo.handle.status.get().kind === 'attached')
    const progress = random.int(0, 40_000)
    await wait('progress', () => echo.returnedBytes > returnedBytes + progress)
    done = echo.reconnections
    onDisconnect?.(done)
  }
  isRunning = false
  await writing
  await wait('the rest', () => echo.returnedBytes === echo.writtenBytes)
  echo.handle.signal('SIGTERM')
  await echo.handle.exit
  const [read = ''] = (await readShell(server, `sha256sum ${file}; rm ${file}`)).split(' ')
  return { disconnects: done, bytesEachWay: echo.returnedBytes, ...echo.digests, read }
}
