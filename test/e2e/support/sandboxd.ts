import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { readLines } from './lines.ts'
import { signalName } from './signal-name.ts'

const MAIN = resolve(import.meta.dir, '../../../apps/sandboxd/src/main.ts')

/** Time to the ready line. */
const READY_TIMEOUT_MS = 60_000

/** Time for a clean exit before SIGKILL; longer than sandboxd takes to end its processes. */
const STOP_TIMEOUT_MS = 60_000

/** Newest log lines kept. */
const MAX_LOG_LINES = 10_000

/** Time to read the rest of the log of a failed start. */
const LOG_DRAIN_MS = 500

/** Log lines shown in the error of a failed start. */
const SHOWN_LOG_LINES = 20

export interface SandboxdOptions {
  /** Appended to the common arguments. */
  readonly args?: readonly string[]
  /** Used instead of the secret file. */
  readonly credential?: readonly string[]
  /** Added to this process's environment; `undefined` removes a name. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** A new directory by default, removed at the end. */
  readonly workspace?: string
  /** Program to run instead of the source, such as a compiled executable. */
  readonly program?: readonly string[]
  readonly readyTimeoutMs?: number
}

/** How the program ended. */
export interface SandboxdExit {
  /** `null` when a signal ended it. */
  readonly code: number | null
  readonly signal: string | null
}

/** A log line: a JSON object, or text when it is not one. */
export type LogLine = Readonly<Record<string, unknown>> | string

/** A running sandboxd and its secret. */
export interface RunningSandboxd extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string
  readonly port: number
  readonly version: string
  readonly secret: string
  readonly headers: { readonly authorization: string }
  readonly pid: number
  readonly workspace: string
  /** The secret's file, which sandboxd removes. */
  readonly secretFile: string
  /** Settles when the program exits. */
  readonly exited: Promise<SandboxdExit>
  /** The newest 10,000 log lines, oldest first. */
  readonly logs: () => readonly LogLine[]
  /** Sends SIGTERM, then SIGKILL after a timeout; removes the temporary directory. */
  readonly stop: () => Promise<SandboxdExit>
  readonly kill: (signal: NodeJS.Signals) => void
  /** Fetches a path with the secret. */
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>
  /** The WebSocket URL of a path. */
  readonly socketUrl: (path: string) => string
}

interface Ready {
  readonly url: string
  readonly version: string
}

function parseObject(line: string): LogLine {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? { ...value } : line
  } catch {
    // Not JSON, such as a crash report: kept as text.
    return line
  }
}

function parseReady(line: LogLine): Ready | undefined {
  if (typeof line === 'string' || line['type'] !== 'ready') return undefined
  const { url, version } = line
  return typeof url === 'string' && typeof version === 'string' ? { url, version } : undefined
}

async function findReady(stdout: ReadableStream<Uint8Array>, found: (ready: Ready) => void): Promise<void> {
  for await (const line of readLines(stdout)) {
    const ready = parseReady(parseObject(line))
    if (ready !== undefined) found(ready)
  }
}

interface Log {
  /** Grows as lines arrive. */
  readonly lines: LogLine[]
  /** Settles at the end of the stream. */
  readonly done: Promise<void>
}

/** Keeps the newest lines of a stream. */
function collectLog(stderr: ReadableStream<Uint8Array>): Log {
  const lines: LogLine[] = []
  const collect = async () => {
    for await (const line of readLines(stderr)) {
      lines.push(parseObject(line))
      if (lines.length > MAX_LOG_LINES) lines.shift()
    }
  }
  return { lines, done: collect() }
}

async function prepareDirectory(workspace: string | undefined) {
  const directory = await mkdtemp(join(tmpdir(), 'sandwire-e2e-'))
  const secret = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')
  const secretFile = join(directory, 'secret')
  await writeFile(secretFile, secret, { mode: 0o600 })
  const used = workspace ?? join(directory, 'workspace')
  await mkdir(used, { recursive: true })
  await chmod(directory, 0o700)
  return { directory, secret, secretFile, workspace: used }
}

/** A started program that may not be ready yet. */
interface Launched {
  readonly pid: number
  readonly stdout: ReadableStream<Uint8Array>
  readonly log: Log
  readonly exited: Promise<SandboxdExit>
  readonly kill: (signal: NodeJS.Signals) => void
}

function launch(argv: string[], env: SandboxdOptions['env']): Launched {
  const child = Bun.spawn(argv, {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, ...env },
  })
  return {
    pid: child.pid,
    stdout: child.stdout,
    log: collectLog(child.stderr),
    exited: child.exited.then(() => ({ code: child.exitCode, signal: signalName(child.signalCode) })),
    kill: (signal) => child.kill(signal),
  }
}

async function end({ kill, exited }: Launched): Promise<SandboxdExit> {
  kill('SIGTERM')
  const timer = setTimeout(() => kill('SIGKILL'), STOP_TIMEOUT_MS)
  const exit = await exited
  clearTimeout(timer)
  return exit
}

async function awaitReady({ stdout, exited }: Launched, timeoutMs: number): Promise<Ready> {
  const { promise, resolve, reject } = Promise.withResolvers<Ready>()
  const fail = (why: string, cause?: unknown) => reject(new Error(`Cannot start sandboxd: ${why}`, { cause }))
  const timer = setTimeout(() => fail(`not ready after ${timeoutMs} ms`), timeoutMs)
  findReady(stdout, resolve).catch((error: unknown) => fail('its stdout cannot be read', error))
  void exited.then(({ code, signal }) => fail(`it ended with "${signal ?? code}"`))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}

/** Ends a program that failed to start and returns an error with the end of its log. */
async function explainFailure({ kill, exited, log }: Launched, error: unknown): Promise<Error> {
  kill('SIGKILL')
  await exited
  // A leftover child process may keep the log open.
  await Promise.race([log.done, Bun.sleep(LOG_DRAIN_MS)])
  const shown = log.lines.slice(-SHOWN_LOG_LINES)
  const text = shown.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  return new Error(`${error instanceof Error ? error.message : String(error)}\n${text}`, { cause: error })
}

/** Starts sandboxd on a free loopback port and waits for its ready line. */
export async function startSandboxd(options: SandboxdOptions = {}): Promise<RunningSandboxd> {
  const { args = [], program = [process.execPath, MAIN], readyTimeoutMs = READY_TIMEOUT_MS } = options
  const { directory, secret, secretFile, workspace } = await prepareDirectory(options.workspace)
  const credential = options.credential ?? ['--secret-file', secretFile]
  const fixed = ['--listen', '127.0.0.1:0', '--workspace', workspace, ...credential]
  const launched = launch([...program, ...fixed, ...args], options.env)
  const removeDirectory = () => rm(directory, { recursive: true, force: true })
  const ready = await awaitReady(launched, readyTimeoutMs).catch(async (error: unknown) => {
    const failure = await explainFailure(launched, error)
    await removeDirectory()
    throw failure
  })
  const authorization = `Bearer ${secret}`
  const stop = async () => {
    const exit = await end(launched)
    await removeDirectory()
    return exit
  }
  return {
    ...ready,
    port: Number(new URL(ready.url).port),
    secret,
    headers: { authorization },
    pid: launched.pid,
    workspace,
    secretFile,
    exited: launched.exited,
    logs: () => [...launched.log.lines],
    stop,
    kill: launched.kill,
    fetch: (path, init = {}) => {
      const headers = new Headers(init.headers)
      if (!headers.has('authorization')) headers.set('authorization', authorization)
      return fetch(new URL(path, ready.url), { ...init, headers })
    },
    socketUrl: (path) => new URL(path, ready.url.replace(/^http/, 'ws')).href,
    [Symbol.asyncDispose]: async () => void (await stop()),
  }
}
