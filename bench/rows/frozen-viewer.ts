import { attach } from '@sandwire/client'
import type { RunningSandboxd } from '../../test/e2e/support/sandboxd.ts'
import { startBenchedSandboxd } from '../peers/sandwire.ts'
import type { Competitor, Row } from '../row.ts'
import type { Workload } from '../scratch.ts'

const BYTES = 30_000_000

/** Starts a viewer that reads from the socket and never acknowledges output. */
function openFrozenViewer(sandboxd: RunningSandboxd, session: string): Promise<{ close(): void }> {
  const attached = Promise.withResolvers<{ close(): void }>()
  const viewer = attach({
    url: sandboxd.url,
    request: { session, role: 'viewer' },
    credentials: async () => ({ headers: sandboxd.headers }),
    onOutput: () => new Promise(() => {}),
    onScreen: () => new Promise(() => {}),
  })
  viewer.status.subscribe((status) => {
    if (status.kind === 'attached') attached.resolve({ close: () => viewer.detach() })
    if (status.kind === 'failed') attached.reject(status.error)
  })
  return attached.promise
}

async function measureDriver(
  sandboxd: RunningSandboxd,
  workload: Workload,
  hasViewer: boolean,
): Promise<number> {
  let bytes = 0
  // Waits for a line, so that the viewer is attached before the flood.
  const script = `read line; cat ${workload.file}`
  const driver = attach({
    url: sandboxd.url,
    request: { cmd: 'sh', args: ['-c', script], mode: 'pty' },
    credentials: async () => ({ headers: sandboxd.headers }),
    onOutput: (_, chunk) => {
      bytes += chunk.byteLength
    },
  })
  const attached = Promise.withResolvers<string>()
  driver.status.subscribe((status) => {
    if (status.kind === 'attached') attached.resolve(status.session)
    if (status.kind === 'failed') attached.reject(status.error)
  })
  const session = await attached.promise
  const viewer = hasViewer ? await openFrozenViewer(sandboxd, session) : undefined
  const startMs = performance.now()
  await driver.write(new Uint8Array([0x0d]))
  await driver.exit
  const ms = performance.now() - startMs
  viewer?.close()
  if (bytes < workload.terminalBytes)
    throw new Error(`Driver got ${bytes} of ${workload.terminalBytes} bytes`)
  return bytes / 1e6 / (ms / 1000)
}

export const frozenViewer: Row = {
  id: 'frozen-viewer',
  title: 'driver beside a frozen viewer',
  unit: 'MB/s',
  about: '30 MB on a terminal to a driver, alone and with a viewer that consumes nothing.',
  targets: [
    {
      text: 'slows < 5 %',
      isMet: (medianOf) => {
        const [alone, beside] = [medianOf('alone'), medianOf('with a frozen viewer')]
        return alone === undefined || beside === undefined ? undefined : beside > alone * 0.95
      },
    },
  ],
  open: async ({ scratch }) => {
    const sandboxd = await startBenchedSandboxd()
    const workload = await scratch.workload(BYTES)
    const competitor = (name: string, hasViewer: boolean, close: () => Promise<void>): Competitor => ({
      name,
      side: 'ours',
      measure: () => measureDriver(sandboxd, workload, hasViewer),
      [Symbol.asyncDispose]: close,
    })
    return [
      competitor('alone', false, async () => {}),
      competitor('with a frozen viewer', true, async () => sandboxd[Symbol.asyncDispose]()),
    ]
  },
}
