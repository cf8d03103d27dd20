import { eventually } from '@sandwire/testing'

/** A server program that was started for a row. */
export interface Spawned extends AsyncDisposable {
  readonly pid: number
}

/** Starts a server and waits until its port takes connections. */
export async function spawnServer(argv: readonly string[], port: number): Promise<Spawned> {
  const child = Bun.spawn([...argv], { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  await eventually(() => isListening(port), { what: `${argv[0]} to listen`, timeoutMs: 10_000 })
  return {
    pid: child.pid,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 3_000)
      await child.exited
      clearTimeout(timer)
    },
  }
}

async function isListening(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data: () => {} } })
    socket.end()
    return true
  } catch {
    // Not listening yet.
    return false
  }
}

/** A port that was free a moment ago. */
export function findFreePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => {} } })
  const { port } = listener
  listener.stop(true)
  return port
}
