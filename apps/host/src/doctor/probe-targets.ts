import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import path from 'node:path'
import { INSIDE } from '../isolation/isolation.ts'
import { openLibc } from '../libc.ts'
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

const LOCK_EXCLUSIVE = 2
/** Files of every system; the sandbox's user can read them too. */
const USED_FILES = ['/usr/bin/env', '/etc/ld.so.cache', '/dev/null', '/dev/urandom'].filter((file) =>
  existsSync(file),
)
const LOCKED_FILE = '/usr/bin/env'
const USE_INTERVAL_MS = 50

/** Locks a file, and opens files at intervals, as programs of this machine do. */
function useFiles(): Disposable {
  const fd = openSync(LOCKED_FILE, 'r')
  openLibc({ flock: { args: ['i32', 'i32'], returns: 'i32' } }).flock(fd, LOCK_EXCLUSIVE)
  const timer = setInterval(() => {
    for (const file of USED_FILES) closeSync(openSync(file, 'r'))
  }, USE_INTERVAL_MS)
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer)
      closeSync(fd)
    },
  }
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
  const usage = useFiles()
  return {
    targets: {
      processMarkerBackwards: Array.from(marker).toReversed().join(''),
      abstractSocket: token,
      addresses: ownAddresses().map((host) => `${host}:${port}`),
      files: [file, '/etc/shadow', '/etc/machine-id', '/etc/apt/sources.list', '/proc/kcore', '/dev/mem'],
      used: USED_FILES,
      locked: LOCKED_FILE,
      folder,
      variable: VARIABLE,
      daemonSocket: INSIDE.daemonSocket,
    },
    [Symbol.asyncDispose]: async () => {
      usage[Symbol.dispose]()
      delete process.env[VARIABLE]
      abstract.close()
      tcp.close()
      sleeper.kill('SIGKILL')
      await sleeper.exited
      rmSync(targetFolder, { recursive: true, force: true })
    },
  }
}
