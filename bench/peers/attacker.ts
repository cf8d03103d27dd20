import { createHmac } from 'node:crypto'
import { cpus } from 'node:os'
import { join } from 'node:path'
import type { RunningHost } from '../../test/e2e/support/control.ts'
import type { Stream } from './stream.ts'

const SECRET = 'a secret that only the bench knows, long enough'
/** Connections of a flood, each with one request in progress. */
const CONNECTIONS = 64
/** Between two requests or keystrokes of the account that is measured. */
const PAUSE_MS = 20

/** Environment of a host that accepts the tokens of attackers. */
export const ATTACKED_ENV = { JWT_SECRET: SECRET }

/** Requests that are repeated on many connections. An empty path: connections without a request. */
export interface Flood {
  readonly path: string
  readonly credential: 'account' | 'invalid' | 'none'
  readonly connections?: number
}

function mintToken(subject: string): string {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const exp = Math.floor(Date.now() / 1000) + 6 * 3600
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ sub: subject, exp })}`
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`
}

/** An account of a host that is not the one that is measured. */
export class Attacker {
  readonly #host: RunningHost
  readonly #token = mintToken('attacker')

  constructor(host: RunningHost) {
    this.#host = host
  }

  async send(method: string, path: string, body: object = {}): Promise<void> {
    const headers = { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' }
    const response = await this.#host.fetch(path, { method, headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`Cannot ${method} ${path}: ${response.status} ${await response.text()}`)
    await response.body?.cancel()
  }

  /** Floods from a process on one core until disposed. */
  flood({ path, credential, connections = CONNECTIONS }: Flood): Disposable {
    if (connections === 0) return { [Symbol.dispose]: () => undefined }
    const authorization = {
      account: [`Authorization: Bearer ${this.#token}`],
      invalid: [`Authorization: Bearer ${this.#token}x`],
      none: [],
    }[credential]
    const { port } = this.#host
    const program = join(import.meta.dir, '../programs/request-flood.ts')
    const pinned = ['taskset', '-c', String(cpus().length - 1), process.execPath, program]
    const child = Bun.spawn(
      [...pinned, String(port), String(connections), path, `Host: 127.0.0.1:${port}`, ...authorization],
      { stdout: 'ignore', stderr: 'inherit' },
    )
    return { [Symbol.dispose]: () => child.kill('SIGKILL') }
  }
}

/** Times one thing after the other, with pauses. */
export async function timeEach(run: () => Promise<void>, forMs: number): Promise<number[]> {
  const times: number[] = []
  const untilMs = performance.now() + forMs
  while (performance.now() < untilMs) {
    const startMs = performance.now()
    await run()
    times.push(performance.now() - startMs)
    await Bun.sleep(PAUSE_MS)
  }
  return times
}

/** Sends a small request of the account that is measured. */
export async function sendSmallRequest(host: RunningHost): Promise<void> {
  const response = await host.fetch('/api/whoami')
  await response.text()
  if (response.status !== 200) throw new Error(`A small request got ${response.status}`)
}

/** Types a byte and waits for its echo. */
export async function typeKey(stream: Stream): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  stream.onData = () => resolve()
  stream.write(new Uint8Array([0x78]))
  await promise
}
