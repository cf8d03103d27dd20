import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import path from 'node:path'
import { INSIDE } from '../isolation/isolation.ts'
import type { ProbeTargets } from './probe-protocol.ts'

/** Probe targets, until disposed. */
export interface OpenProbeTargets extends AsyncDisposable {
  readonly targets: ProbeTargets
}

const VARIABLE = 'SANDWIRE_PROBE_TARGET'

async function listenOn(
  server: Server,
  where: { path: string } | { port: number; host: string },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(where, resolve)
  return promise
}

/** Keeps a connection open until the peer closes it. */
function keepOpen(socket: Socket): void {
  // Closed when the sandbox ends.
  socket.on('error', () => undefined)
  socket.resume()
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ family }) => family === 'IPv4')
    .map(({ address }) => address)
    .slice(0, 15)
}

/** Creates a file in the data folder, a process, a variable, and listening sockets. */
export async function openProbeTargets(folder: string, token: string): Promise<OpenProbeTargets> {
  const targetFolder = mkdtempSync(path.join(folder, 'probe-target-'))
  const file = path.join(targetFolder, 'secret')
  writeFileSync(file, token, { mode: 0o644 })
  const marker = `sandwire-probe-target-${token}`
  // Ends with this process, because it waits on its stdin.
  const sleeper = Bun.spawn(['sh', '-c', 'read -r _; :', marker], { stdio: ['pipe', 'ignore', 'ignore'] })
  const abstract = createServer(keepOpen)
  await listenOn(abstract, { path: `\0${token}` })
  const tcp = createServer(keepOpen)
  await listenOn(tcp, { port: 0, host: '0.0.0.0' })
  const address = tcp.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  process.env[VARIABLE] = token
  return {
    targets: {
      processMarkerBackwards: Array.from(marker).toReversed().join(''),
      abstractSocket: token,
      addresses: ownAddresses().map((host) => `${host}:${port}`),
      files: [file, '/etc/shadow', '/etc/machine-id', '/etc/apt/sources.list', '/proc/kcore', '/dev/mem'],
      variable: VARIABLE,
      daemonSocket: INSIDE.daemonSocket,
    },
    [Symbol.asyncDispose]: async () => {
      delete process.env[VARIABLE]
      abstract.close()
      tcp.close()
      sleeper.kill('SIGKILL')
      await sleeper.exited
      rmSync(targetFolder, { recursive: true, force: true })
    },
  }
}
