import { join } from 'node:path'

/** Debian's interpreter, for which python3-websockets is installed. */
const PYTHON = '/usr/bin/python3'

const SCRIPT = join(import.meta.dir, 'python-peer.py')

const DEFAULT_TIMEOUT_MS = 30_000

/** Bytes of each stream returned as text besides length and digest. */
const DEFAULT_KEEP_BYTES = 4096

export interface PythonPeerOptions {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Control messages sent before the input. */
  readonly messages?: readonly object[]
  readonly input?: Uint8Array<ArrayBuffer>
  /** Sends `eof` after the input; default true. */
  readonly sendEof?: boolean
  /** Bytes of each stream to return as `head`; default 4,096. */
  readonly keepBytes?: number
  /** The peer is killed after this; default 30,000. */
  readonly timeoutMs?: number
}

/** One output stream as Python received it. */
export interface PythonStream {
  readonly length: number
  /** Hex. */
  readonly sha256: string
  /** The first bytes as UTF-8. */
  readonly head: string
}

export type PythonPeerResult =
  | {
      readonly kind: 'closed'
      readonly code: number
      readonly reason: string
      /** Text messages of the server, parsed, in order. */
      readonly control: readonly unknown[]
      readonly stdout: PythonStream
      readonly stderr: PythonStream
    }
  | { readonly kind: 'refused'; readonly status: number }

/** Why the Python peer cannot run on this machine; `undefined` when it can. */
export async function findPythonPeerProblem(): Promise<string | undefined> {
  if (!(await Bun.file(PYTHON).exists())) return `${PYTHON} is missing`
  const probe = Bun.spawn([PYTHON, '-c', 'import websockets'], { stdout: 'ignore', stderr: 'ignore' })
  return (await probe.exited) === 0
    ? undefined
    : 'python3-websockets is missing (apt-get install python3-websockets)'
}

/** Checks only the tag: the script is part of this package. */
function isResult(value: unknown): value is PythonPeerResult {
  return typeof value === 'object' && value !== null && 'kind' in value
}

/** Runs the Python peer against a server until the server closes the connection. */
export async function runPythonPeer(options: PythonPeerOptions): Promise<PythonPeerResult> {
  const { url, headers = {}, messages = [], input = new Uint8Array(0), sendEof = true } = options
  const { keepBytes = DEFAULT_KEEP_BYTES, timeoutMs = DEFAULT_TIMEOUT_MS } = options
  const config = Buffer.from(`${JSON.stringify({ url, headers, messages, sendEof, keepBytes })}\n`)
  const peer = Bun.spawn([PYTHON, SCRIPT], {
    stdin: new Blob([config, input]),
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: timeoutMs,
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(peer.stdout).text(),
    new Response(peer.stderr).text(),
    peer.exited,
  ])
  if (code !== 0)
    throw new Error(`Python peer failed with "${peer.signalCode ?? code}": ${stderr.slice(-2_000)}`)
  const result: unknown = JSON.parse(stdout)
  if (!isResult(result)) throw new Error(`Python peer returned "${stdout.slice(0, 200)}"`)
  return result
}
