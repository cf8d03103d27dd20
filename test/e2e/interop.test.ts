import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  connectPlain,
  type FaultProxy,
  findPythonPeerProblem,
  openFaultProxy,
  patternAt,
  runPythonPeer,
} from '@sandwire/testing'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** What a client sends: control messages, then input, then optionally the end of input. */
interface Conversation {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly messages?: readonly object[]
  readonly input?: Uint8Array<ArrayBuffer>
  readonly sendEof?: boolean
}

interface Stream {
  readonly length: number
  readonly sha256: string
  /** The first bytes as text. */
  readonly head: string
}

/** What the client has received when the server closed. */
interface Outcome {
  readonly code: number
  readonly control: readonly unknown[]
  readonly stdout: Stream
  readonly stderr: Stream
}

/** A third-party WebSocket client. */
interface Peer {
  readonly name: string
  /** Why it cannot run here. */
  readonly problem?: string | undefined
  readonly talk: (conversation: Conversation) => Promise<Outcome>
}

interface Case {
  readonly title: string
  readonly argv: readonly [string, ...string[]]
  readonly mode?: 'pty'
  readonly messages?: readonly object[]
  readonly input?: Uint8Array<ArrayBuffer>
  /** Default true. */
  readonly sendEof?: boolean
  /** Bytes per second that the client receives at most. */
  readonly bytesPerSecond?: number
  readonly exit: object
  readonly stdout?: Uint8Array | RegExp
  readonly stderr?: string
}

const HEAD_BYTES = 4096
const CHUNK_BYTES = 32 * 1024
const TEN_MEGABYTES = patternAt(7, 0, 10_000_000)

function sh(script: string): readonly [string, ...string[]] {
  return ['sh', '-c', script]
}

const CASES: readonly Case[] = [
  {
    title: 'receives the echo of cat, which exits at the end of input',
    argv: ['cat'],
    input: new Uint8Array(Buffer.from('hello\n')),
    exit: { code: 0 },
    stdout: Buffer.from('hello\n'),
  },
  {
    title: 'receives nothing from a process without output',
    argv: ['true'],
    exit: { code: 0 },
    stdout: Buffer.alloc(0),
  },
  {
    title: 'receives every byte value back',
    argv: ['cat'],
    input: Uint8Array.from({ length: 256 }, (_, byte) => byte),
    exit: { code: 0 },
    stdout: Uint8Array.from({ length: 256 }, (_, byte) => byte),
  },
  { title: 'receives exit code 1', argv: ['false'], exit: { code: 1 } },
  { title: 'receives exit code 255', argv: sh('exit 255'), exit: { code: 255 } },
  { title: 'receives code 127 for an unknown command', argv: ['no-such-command'], exit: { code: 127 } },
  {
    title: 'receives the signal that killed the process',
    argv: sh('kill -KILL $$'),
    exit: { code: 137, signal: 'SIGKILL' },
  },
  {
    title: 'sends a signal',
    argv: ['sleep', '1000'],
    messages: [{ type: 'signal', signal: 'SIGTERM' }],
    sendEof: false,
    exit: { code: 143, signal: 'SIGTERM' },
  },
  {
    title: 'receives both streams separately',
    argv: sh('echo out; echo err >&2'),
    exit: { code: 0 },
    stdout: Buffer.from('out\n'),
    stderr: 'err\n',
  },
  {
    title: 'resizes a terminal',
    argv: sh('read line; stty size'),
    mode: 'pty',
    messages: [{ type: 'resize', cols: 123, rows: 45 }],
    input: new Uint8Array(Buffer.from('\n')),
    sendEof: false,
    exit: { code: 0 },
    stdout: /45 123\r\n$/,
  },
  {
    title: 'ends the input of a terminal',
    argv: sh('cat; echo end'),
    mode: 'pty',
    exit: { code: 0 },
    stdout: /end\r\n$/,
  },
  {
    title: 'sends and receives 10 MB',
    argv: ['cat'],
    input: TEN_MEGABYTES,
    exit: { code: 0 },
    stdout: TEN_MEGABYTES,
  },
  {
    title: 'sends 10 MB to a process that counts',
    argv: ['wc', '-c'],
    input: TEN_MEGABYTES,
    exit: { code: 0 },
    stdout: Buffer.from('10000000\n'),
  },
  {
    title: 'receives everything over a slow connection',
    argv: sh('head -c 3000000 /dev/zero; exit 3'),
    bytesPerSecond: 2_000_000,
    exit: { code: 3 },
    stdout: new Uint8Array(3_000_000),
  },
]

async function talkWithWs({
  url,
  headers,
  messages = [],
  input,
  sendEof = true,
}: Conversation): Promise<Outcome> {
  await using client = await connectPlain(url, { headers })
  for (const message of messages) await client.sendControl(message)
  for (let at = 0; at < (input?.length ?? 0); at += CHUNK_BYTES) {
    await client.sendInput(input?.subarray(at, at + CHUNK_BYTES) ?? '')
  }
  // The process may have exited and closed the connection.
  if (sendEof) await client.sendEof().catch(() => {})
  const { code } = await client.closed
  expect(client.violations).toEqual([])
  const stream = ({ length, sha256, bytes }: { length: number; sha256: string; bytes: Uint8Array }) => ({
    length,
    sha256,
    head: Buffer.from(bytes.subarray(0, HEAD_BYTES)).toString(),
  })
  return { code, control: client.control, stdout: stream(client.stdout), stderr: stream(client.stderr) }
}

async function talkWithPython(conversation: Conversation): Promise<Outcome> {
  const result = await runPythonPeer({ ...conversation, keepBytes: HEAD_BYTES })
  if (result.kind === 'refused') throw new Error(`Server answered ${result.status}`)
  return result
}

const PEERS: readonly Peer[] = [
  { name: 'npm ws', talk: talkWithWs },
  { name: 'Python websockets', problem: await findPythonPeerProblem(), talk: talkWithPython },
]

/** Finds a free port: the proxy needs it before sandboxd listens. */
async function findFreePort(): Promise<number> {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const { port = 0 } = server
  await server.stop(true)
  return port
}

describe.each(PEERS.map((peer) => [peer.name, peer] as const))(
  'plain dialect, %s',
  (_, { talk, problem }) => {
    let sandboxd: RunningSandboxd
    let proxy: FaultProxy

    beforeAll(async () => {
      const port = await findFreePort()
      proxy = openFaultProxy({ target: { port } })
      sandboxd = await startSandboxd({
        args: ['--listen', `127.0.0.1:${port}`, '--host', `127.0.0.1:${proxy.port}`],
      })
    })

    afterAll(async () => {
      proxy.close()
      expect(await sandboxd.stop()).toEqual({ code: 0, signal: null })
    })

    const title = problem === undefined ? '%s' : `%s (skipped: ${problem})`
    const rows = CASES.map((each) => [each.title, each] as const)

    test.skipIf(problem !== undefined).each(rows)(title, async (__, each) => {
      const { argv, mode = 'pipe', messages = [], input, sendEof = true, bytesPerSecond } = each
      const isSlow = bytesPerSecond !== undefined
      if (isSlow) proxy.setFaults({ toClient: { rateBytesPerSecond: bytesPerSecond } })
      const [cmd, ...args] = argv
      const query = new URLSearchParams([['cmd', cmd], ...args.map((arg) => ['arg', arg]), ['mode', mode]])
      const outcome = await talk({
        url: `ws://127.0.0.1:${isSlow ? proxy.port : sandboxd.port}/attach?${query}`,
        headers: sandboxd.headers,
        messages,
        sendEof,
        ...(input === undefined ? {} : { input }),
      })
      expect(outcome.code).toBe(1000)
      expect(outcome.control.at(-1)).toEqual({ type: 'exit', ...each.exit })
      if (each.stdout instanceof RegExp) expect(outcome.stdout.head).toMatch(each.stdout)
      else if (each.stdout !== undefined) {
        expect(outcome.stdout.length).toBe(each.stdout.length)
        expect(outcome.stdout.sha256).toBe(createHash('sha256').update(each.stdout).digest('hex'))
      }
      if (each.stderr !== undefined) expect(outcome.stderr.head).toBe(each.stderr)
    })
  },
)
