import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fillBuildCache, keepBuildCache } from './build-cache.ts'
import { readLines } from './lines.ts'
import { signalName } from './signal-name.ts'
import type { WireServer } from './wire-server.ts'

const MAIN = resolve(import.meta.dir, '../../../apps/host/src/main.ts')
/** A cold start bundles control and boots workerd. */
const READY_TIMEOUT_MS = 60_000
/** The host stops its sandboxes before it exits. */
const STOP_TIMEOUT_MS = 30_000

/** Finds the port in the printed URL or list of addresses. */
const ADDRESS = /(?:^|running at |Listening +)(?:https?:\/\/)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0):([0-9]+)/

export interface HostOptions {
  /** A new folder by default, removed at the end. */
  readonly data?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Command prefix, such as `setpriv …`. */
  readonly prefix?: readonly string[]
}

/** A running `sandwire up` on its own port. */
export interface RunningHost extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string
  readonly port: number
  readonly data: string
  readonly token: string
  readonly headers: { readonly authorization: string }
  readonly pid: number
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>
  /** Its output so far. */
  readonly output: () => string
  readonly kill: (signal: NodeJS.Signals) => void
  /** Stops it and removes the data folder if it was created here. */
  readonly stop: () => Promise<void>
  /** Fetches a path of control with the token. */
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>
}

/** Starts the host with workerd and waits until it prints its address. */
export async function startHost(options: HostOptions = {}): Promise<RunningHost> {
  const data = options.data ?? (await mkdtemp(join(tmpdir(), 'sandwire-host-')))
  // Failpoints change what a host builds.
  const usesCache = options.env?.['BUN_OPTIONS'] === undefined && existsSync(data)
  if (usesCache) await fillBuildCache(data)
  const config = join(data, 'config')
  const argv = [...(options.prefix ?? []), process.execPath, MAIN, 'up', '--port', '0', '--data', data]
  const child = Bun.spawn([...argv, ...(options.args ?? [])], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, XDG_CONFIG_HOME: config, ...options.env },
  })
  let output = ''
  const { promise, resolve: found, reject } = Promise.withResolvers<string>()
  const follow = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    for await (const line of readLines(stream)) {
      output += `${line}\n`
      const url = ADDRESS.exec(line)?.[1]
      if (url !== undefined) found(url)
    }
  }
  const following = Promise.all([follow(child.stdout), follow(child.stderr)])
  const exited = child.exited.then(() => ({ code: child.exitCode, signal: signalName(child.signalCode) }))
  const timer = setTimeout(
    () => reject(new Error(`Cannot start the host: no address\n${output}`)),
    READY_TIMEOUT_MS,
  )
  void exited.then(async () => {
    await following
    reject(new Error(`Cannot start the host: it ended\n${output}`))
  })
  const port = Number(await promise.finally(() => clearTimeout(timer)))
  if (usesCache) await keepBuildCache(data)
  const token = (await readFile(join(data, 'local-token'), 'utf8')).trim()
  const headers = { authorization: `Bearer ${token}` }
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    await exited
    clearTimeout(late)
    if (options.data === undefined) await rm(data, { recursive: true, force: true })
  }
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    data,
    token,
    headers,
    pid: child.pid,
    exited,
    output: () => output,
    kill: (signal) => child.kill(signal),
    stop,
    fetch: (path, init = {}) => {
      const all = new Headers(init.headers)
      if (!all.has('authorization')) all.set('authorization', headers.authorization)
      return fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: all })
    },
    [Symbol.asyncDispose]: stop,
  }
}

/** Maps sandboxd's routes to those of control. */
function toControlPath(path: string): string {
  return path.replace(/^\/sessions/, '/api/account/sessions')
}

/** Starts a host with one sandbox, as a server for the wire tests. */
export async function startSandbox(options: HostOptions = {}, sandbox = 'wire'): Promise<WireServer> {
  const host = await startHost(options)
  return {
    port: host.port,
    headers: host.headers,
    sandbox,
    socketUrl: (path) => {
      const url = new URL(path, `ws://127.0.0.1:${host.port}`)
      url.searchParams.set('sandbox', sandbox)
      return url.href
    },
    fetch: (path, init) => host.fetch(toControlPath(path), init),
    stop: host.stop,
  }
}
