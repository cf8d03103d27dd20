import { appendFileSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { FakeSprite } from './sprite.ts'

export interface ServiceDefinition {
  readonly cmd: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly dir?: string
  readonly needs?: readonly string[]
  readonly http_port?: number
}

type Status = 'stopped' | 'starting' | 'running' | 'stopping' | 'failed'

/** How long a service may take to end after SIGTERM. */
const STOP_MS = 10_000
/** Before a service that crashed starts again. */
const RESTART_MS = 200

/** A service of a sprite: a real process that is restarted when it crashes. */
export class FakeService {
  readonly name: string
  definition: ServiceDefinition
  readonly #sprite: FakeSprite
  readonly #log: string
  #status: Status = 'stopped'
  #process: Bun.Subprocess | undefined
  #startedAt: string | undefined
  #restarts = 0
  #isWanted = false

  constructor(sprite: FakeSprite, name: string, definition: ServiceDefinition) {
    this.name = name
    this.definition = definition
    this.#sprite = sprite
    this.#log = path.join(sprite.root, '.sprite/logs/services', `${name}.log`)
  }

  /** Number of starts, restarts included. */
  starts = 0

  describe(): object {
    const { cmd, args = [], needs = [], env, dir, http_port } = this.definition
    return {
      name: this.name,
      cmd,
      args,
      needs,
      ...(env !== undefined && { env }),
      ...(dir !== undefined && { dir }),
      ...(http_port !== undefined && { http_port }),
      state: {
        name: this.name,
        status: this.#status,
        ...(this.#process !== undefined && { pid: this.#process.pid }),
        ...(this.#startedAt !== undefined && { started_at: this.#startedAt }),
        restart_count: this.#restarts,
      },
    }
  }

  start(): void {
    if (this.#process !== undefined) return
    this.#isWanted = true
    this.starts += 1
    const { cmd, args = [], env = {}, dir } = this.definition
    const pairs = Object.entries(env).map(([key, value]) => `${key}=${value}`)
    const spawned = Bun.spawn(
      this.#sprite.commandOf([cmd, ...args], {
        env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...pairs],
        ...(dir !== undefined && { dir }),
      }),
      { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', detached: true },
    )
    this.#process = spawned
    this.#status = 'running'
    this.#startedAt = new Date().toISOString()
    const pump = async (from: ReadableStream<Uint8Array>): Promise<void> => {
      for await (const bytes of from) this.#append(bytes)
    }
    void pump(spawned.stdout)
    void pump(spawned.stderr)
    void spawned.exited.then((code) => this.#exited(spawned, code))
  }

  async stop(): Promise<void> {
    this.#isWanted = false
    const running = this.#process
    if (running === undefined) {
      this.#status = 'stopped'
      return
    }
    this.#status = 'stopping'
    running.kill('SIGTERM')
    const timer = setTimeout(() => running.kill('SIGKILL'), STOP_MS)
    await running.exited
    clearTimeout(timer)
    this.#status = 'stopped'
  }

  signal(signal: NodeJS.Signals): boolean {
    this.#process?.kill(signal)
    return this.#process !== undefined
  }

  /** The sprite goes cold; the service starts with the next boot if it ran. */
  markStopped(): void {
    this.#process = undefined
    this.#status = 'stopped'
  }

  logs(lines: number): string {
    try {
      return readFileSync(this.#log, 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
    } catch {
      // Nothing was written yet.
      return ''
    }
  }

  #append(bytes: Uint8Array): void {
    try {
      appendFileSync(this.#log, bytes)
    } catch {
      // The sprite was destroyed.
    }
  }

  #exited(ended: Bun.Subprocess, code: number): void {
    if (this.#process !== ended) return
    this.#process = undefined
    this.#status = code === 0 || !this.#isWanted ? 'stopped' : 'failed'
    if (!this.#isWanted || this.#sprite.status === 'cold') return
    this.#restarts += 1
    setTimeout(() => {
      if (this.#isWanted && this.#sprite.status !== 'cold') this.start()
    }, RESTART_MS)
  }
}
