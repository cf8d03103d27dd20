import type { SpritesBehavior } from './behavior.ts'
import type { FakeSprite } from './sprite.ts'

/** Output that an attach replays. */
const MAX_HISTORY_BYTES = 1024 * 1024
/** Output of a command that ended before its client attached. */
const FAST_PATH_BYTES = 65_536
/** Hyperlinks, which a rendered screen does not contain. */
// oxlint-disable-next-line no-control-regex -- The sequence consists of control characters.
const HYPERLINK = /\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)/g

/** A client of a session. */
export interface ExecClient {
  sendText(message: object): void
  sendBytes(bytes: Uint8Array): void
  /** Ends the connection after the exit. */
  end(): void
}

export interface ExecRequest {
  readonly argv: readonly string[]
  readonly env: readonly string[]
  readonly dir: string | undefined
  readonly isTty: boolean
  readonly hasStdin: boolean
  readonly cols: number
  readonly rows: number
  /** How long the process runs without a client; undefined: for ever. */
  readonly afterDisconnectMs: number | undefined
}

const STDOUT = 1
const STDERR = 2
const EXIT = 3

function framed(stream: number, bytes: Uint8Array): Uint8Array {
  const frame = new Uint8Array(bytes.length + 1)
  frame[0] = stream
  frame.set(bytes, 1)
  return frame
}

/** A process of the exec API, its history and its clients. */
export class ExecSession {
  readonly id: string
  readonly createdAt = Date.now()
  readonly request: ExecRequest
  readonly #sprite: FakeSprite
  readonly #behavior: SpritesBehavior
  readonly #process: Bun.Subprocess
  readonly #terminal: Bun.Terminal | undefined
  readonly #clients = new Set<ExecClient>()
  /** Frames, as they were sent. */
  #history: Uint8Array[] = []
  #historyBytes = 0
  #lastActivity = Date.now()
  #exitCode: number | undefined
  #orphanTimer: ReturnType<typeof setTimeout> | undefined
  readonly ended: Promise<void>

  constructor(sprite: FakeSprite, request: ExecRequest, behavior: SpritesBehavior) {
    this.id = sprite.mintSessionId()
    this.#sprite = sprite
    this.#behavior = behavior
    this.request = request
    const command = sprite.commandOf(request.argv, {
      env: request.env,
      ...(request.dir !== undefined && { dir: request.dir }),
    })
    const { cols, rows } = request
    if (request.isTty) {
      this.#process = Bun.spawn(command, {
        env: { ...process.env, TERM: 'xterm-256color' },
        terminal: { cols, rows, data: (_, bytes) => this.#receive(undefined, bytes) },
      })
      this.#terminal = this.#process.terminal
      this.ended = this.#process.exited.then(() => Bun.sleep(5)).then(() => this.#finish())
    } else {
      const spawned = Bun.spawn(command, {
        stdin: request.hasStdin ? 'pipe' : 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
        detached: true,
      })
      this.#process = spawned
      const pump = async (stream: number, from: ReadableStream<Uint8Array>): Promise<void> => {
        for await (const bytes of from) this.#receive(stream, bytes)
      }
      this.ended = Promise.all([
        pump(STDOUT, spawned.stdout),
        pump(STDERR, spawned.stderr),
        spawned.exited,
      ]).then(() => this.#finish())
    }
    sprite.sessions.set(this.id, this)
  }

  get isEnded(): boolean {
    return this.#exitCode !== undefined
  }

  describe(): object {
    const iso = (ms: number): string => new Date(ms).toISOString()
    return {
      id: this.id,
      command: this.request.argv.join(' '),
      workdir: this.request.dir ?? '/home/sprite',
      created: iso(this.createdAt),
      tty: this.request.isTty,
      bytes_per_second: 0,
      is_active: false,
      last_activity: iso(this.#lastActivity),
    }
  }

  /** Adds a client. `isOwner`: it started the session. Bytes of `outputOffset` and more are replayed. */
  attach(client: ExecClient, isOwner: boolean, outputOffset = 0): void {
    clearTimeout(this.#orphanTimer)
    const { sendsDebug, hasNumericSessionId, hasFastPath } = this.#behavior
    const pid = this.#process.pid
    const isFast = hasFastPath && this.isEnded && !this.request.isTty
    if (sendsDebug) {
      const length = Math.min(this.#historyBytes, FAST_PATH_BYTES)
      const msg = isFast
        ? `fast_path attach_err=session has exited exit_code=${this.#exitCode} history_len=${length}`
        : `normal_path history_len=${isOwner ? 0 : this.#historyBytes}`
      client.sendText({ msg: `session_created cmd=${this.request.argv[0]}`, pid, type: 'debug' })
      client.sendText({ msg, pid, t_ms: 17, type: 'debug' })
    }
    client.sendText({
      type: 'session_info',
      session_id: hasNumericSessionId ? Number(this.id) : this.id,
      command: this.request.argv[0],
      created: Math.floor(this.createdAt / 1000),
      cols: 0,
      rows: 0,
      is_owner: isOwner,
      tty: this.request.isTty,
    })
    if (isFast) client.sendBytes(framed(STDOUT, this.#mergedHistory().subarray(0, FAST_PATH_BYTES)))
    else this.#replay(client, outputOffset)
    if (this.isEnded) this.#sendExit(client)
    else this.#clients.add(client)
  }

  detach(client: ExecClient): void {
    this.#clients.delete(client)
    const { afterDisconnectMs } = this.request
    if (this.#clients.size > 0 || this.isEnded || afterDisconnectMs === undefined) return
    this.#orphanTimer = setTimeout(() => this.signal('SIGKILL'), afterDisconnectMs)
  }

  write(bytes: Uint8Array): void {
    if (this.#terminal !== undefined) this.#terminal.write(bytes)
    else void this.#writeInput(bytes)
  }

  async #writeInput(bytes: Uint8Array): Promise<void> {
    const { stdin } = this.#process
    if (stdin === undefined || typeof stdin === 'number') return
    try {
      await stdin.write(bytes)
      await stdin.flush()
    } catch {
      // It has ended, which its exit reports.
    }
  }

  endInput(): void {
    const stdin = this.#process.stdin
    if (stdin !== undefined && typeof stdin !== 'number') void stdin.end()
  }

  resize(cols: number, rows: number): void {
    this.#terminal?.resize(cols, rows)
  }

  /** Signals the process group. */
  signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.#process.pid, signal)
    } catch {
      // It ended, or has no group of its own.
      this.#process.kill(signal)
    }
  }

  #receive(stream: number | undefined, bytes: Uint8Array): void {
    this.#lastActivity = Date.now()
    const frame = stream === undefined ? new Uint8Array(bytes) : framed(stream, bytes)
    this.#history.push(frame)
    this.#historyBytes += bytes.length
    for (let first = this.#history[0]; this.#historyBytes > MAX_HISTORY_BYTES && first !== undefined;) {
      this.#historyBytes -= first.length - (stream === undefined ? 0 : 1)
      this.#history.shift()
      first = this.#history[0]
    }
    for (const client of this.#clients) client.sendBytes(frame)
  }

  #mergedHistory(): Uint8Array {
    return Buffer.concat(this.#history.map((frame) => frame.subarray(1)))
  }

  #replay(client: ExecClient, outputOffset: number): void {
    if (this.request.isTty) {
      const raw = Buffer.concat(this.#history)
      if (raw.length === 0) return
      const isRendered = this.#behavior.replay === 'rendered'
      client.sendBytes(
        isRendered ? Buffer.from(raw.toString('latin1').replaceAll(HYPERLINK, ''), 'latin1') : raw,
      )
      return
    }
    let skipped = outputOffset
    for (const frame of this.#history) {
      const length = frame.length - 1
      if (skipped >= length) skipped -= length
      else {
        client.sendBytes(framed(frame[0] ?? STDOUT, frame.subarray(1 + skipped)))
        skipped = 0
      }
    }
  }

  #finish(): void {
    const { exitCode, signalCode } = this.#process
    const signals: Readonly<Record<string, number>> = {
      SIGHUP: 1,
      SIGINT: 2,
      SIGQUIT: 3,
      SIGKILL: 9,
      SIGTERM: 15,
    }
    this.#exitCode = exitCode ?? 128 + (signals[signalCode ?? ''] ?? 0)
    this.#sprite.sessions.delete(this.id)
    for (const client of this.#clients) this.#sendExit(client)
    this.#clients.clear()
  }

  #sendExit(client: ExecClient): void {
    const { exitsEarly, sendsExitFrame, execEndMs } = this.#behavior
    client.sendText({ type: 'exit', exit_code: this.#exitCode })
    if (!this.request.isTty) {
      if (exitsEarly) client.sendBytes(framed(STDOUT, new TextEncoder().encode('after exit\n')))
      if (sendsExitFrame) client.sendBytes(new Uint8Array([EXIT, (this.#exitCode ?? 0) & 0xff]))
    }
    setTimeout(() => client.end(), execEndMs)
  }
}
