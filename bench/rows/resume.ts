import { openFaultProxy } from '@sandwire/testing'
import { startBenchedSandboxd, attachStream } from '../peers/sandwire.ts'
import { below, type Competitor, type Row } from '../row.ts'
import { median } from '../statistics.ts'

/** Disconnects per measurement. */
const CUTS = 10

/** Prints numbered lines endlessly, so that missing or repeated lines are noticed. */
const SCRIPT = 'n=0; while :; do n=$((n+1)); echo $n; sleep 0.005; done'

/** Time from a disconnect to the next line, which must have the next number. */
async function openSandwire(): Promise<Competitor> {
  const sandboxd = await startBenchedSandboxd()
  const proxy = openFaultProxy({ target: sandboxd })
  const measure = async (): Promise<number> => {
    const stream = await attachStream(sandboxd, { argv: ['sh', '-c', SCRIPT], mode: 'pipe' }, proxy.port)
    let text = ''
    let wake = Promise.withResolvers<void>()
    stream.onData = (bytes) => {
      text += Buffer.from(bytes).toString()
      wake.resolve()
    }
    const next = (): Promise<void> => {
      wake = Promise.withResolvers<void>()
      return wake.promise
    }
    const times: number[] = []
    for (let left = CUTS; left > 0; left -= 1) {
      await next()
      proxy.disconnectAll('reset')
      const startMs = performance.now()
      await next()
      times.push(performance.now() - startMs)
    }
    stream.close()
    const lines = text.split('\n').slice(0, -1)
    if (!lines.every((line, index) => line === String(index + 1)))
      throw new Error('Lines are missing or doubled')
    return median(times)
  }
  return {
    name: 'sandwire',
    side: 'ours',
    measure,
    [Symbol.asyncDispose]: async () => {
      proxy.close()
      await sandboxd[Symbol.asyncDispose]()
    },
  }
}

export const resume: Row = {
  id: 'resume',
  title: 'resume after a disconnect',
  unit: 'ms',
  about:
    'From a reset of the connection to the next output on a new one, with every line checked. Peers end the process.',
  targets: [below('sandwire', 2_000, 'ms')],
  open: async () => [await openSandwire()],
}
