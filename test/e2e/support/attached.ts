import { attach, type AttachHandle, type AttachOptions, type Screen } from '@sandwire/client'
import { eventually, type OutputMode, ReceivedStream } from '@sandwire/testing'
import type { WireServer } from './wire-server.ts'

type Presence = Parameters<NonNullable<AttachOptions['onPresence']>>[0]
type Exit = Awaited<AttachHandle['exit']>

export interface AttachedOptions extends Partial<AttachOptions> {
  /** `bytes` by default; `digest` stores only a hash. */
  readonly output?: OutputMode
  /** Port of a proxy; the Host header still names the server. */
  readonly port?: number
  /** Consumes no output until `thaw`. */
  readonly isFrozen?: boolean
}

function toBytes(input: Uint8Array | string): Uint8Array {
  return typeof input === 'string' ? new TextEncoder().encode(input) : input
}

/** An attachment of the client library that records its events and can stop consuming. */
export class Attached implements AsyncDisposable {
  readonly handle: AttachHandle
  readonly stdout: ReceivedStream
  readonly stderr: ReceivedStream
  readonly screens: Screen[] = []
  readonly gaps: { readonly from: number; readonly to: number }[] = []
  readonly warnings: string[] = []
  readonly inputLost: { readonly bytes: number; readonly why: 'role' | 'stdinClosed' }[] = []
  readonly presences: Presence[] = []
  readonly sizes: { readonly cols: number; readonly rows: number }[] = []
  readonly asked: string[] = []
  /** Events in order, for tests that render a screen. */
  readonly events: (
    | { readonly kind: 'output'; readonly bytes: Uint8Array }
    | { readonly kind: 'screen'; readonly screen: Screen }
    | { readonly kind: 'resized'; readonly cols: number; readonly rows: number }
  )[] = []
  /** Number of reconnects. */
  reconnections = 0
  readonly #server: WireServer
  readonly #keepsEvents: boolean
  #isFrozen: boolean
  readonly #held: (() => void)[] = []

  constructor(
    server: WireServer,
    request: AttachOptions['request'],
    { output = 'bytes', port, isFrozen = false, ...options }: AttachedOptions = {},
  ) {
    this.#server = server
    this.#isFrozen = isFrozen
    this.#keepsEvents = output === 'bytes'
    this.stdout = new ReceivedStream(output)
    this.stderr = new ReceivedStream(output)
    const headers = { ...server.headers, host: `127.0.0.1:${server.port}` }
    this.handle = attach({
      url: `http://127.0.0.1:${port ?? server.port}`,
      request: server.sandbox === undefined ? request : { ...request, sandbox: server.sandbox },
      credentials: async () => ({ headers }),
      acknowledge: options.onOutput === undefined ? 'manual' : 'on-return',
      onOutput: (stream, bytes, done) =>
        this.#consume(() => {
          this[stream].push(bytes)
          if (this.#keepsEvents) this.events.push({ kind: 'output', bytes })
          done()
        }),
      onScreen: (screen, done) =>
        this.#consume(() => {
          this.screens.push(screen)
          if (this.#keepsEvents) this.events.push({ kind: 'screen', screen })
          done()
        }),
      onResized: (cols, rows) => {
        this.sizes.push({ cols, rows })
        this.events.push({ kind: 'resized', cols, rows })
      },
      onGap: (from, to) => this.gaps.push({ from, to }),
      onWarning: (code) => this.warnings.push(code),
      onInputLost: (bytes, why) => this.inputLost.push({ bytes, why }),
      onPresence: (presence) => this.presences.push(presence),
      onAsked: (by) => this.asked.push(by),
      ...options,
    })
    this.handle.status.subscribe((status) => {
      if (status.kind === 'reconnecting') this.reconnections++
    })
  }

  get exit(): Promise<Exit> {
    return this.handle.exit
  }

  /** Id of the session; throws before the first welcome. */
  get session(): string {
    const { session } = this.handle
    if (session === undefined) throw new Error('Cannot name the session: not attached yet')
    return session
  }

  /** All of stdout so far. */
  get text(): string {
    return this.stdout.text
  }

  freeze(): void {
    this.#isFrozen = true
  }

  /** Consumes the pending and all later output. */
  thaw(): void {
    this.#isFrozen = false
    for (const deliver of this.#held.splice(0)) deliver()
  }

  send(input: Uint8Array | string): Promise<void> {
    return this.handle.write(toBytes(input))
  }

  /** Writes input in chunks, waiting while the process does not read. */
  async sendInBlocks(input: Uint8Array, blockBytes: number): Promise<void> {
    for (let from = 0; from < input.byteLength; from += blockBytes) {
      await this.handle.write(input.subarray(from, from + blockBytes))
    }
  }

  async isAttached(): Promise<this> {
    await eventually(() => this.handle.status.get().kind === 'attached', { what: 'the attachment' })
    return this
  }

  /** Waits until stdout contains this text. */
  async waitFor(text: string): Promise<void> {
    const sought = Buffer.from(text)
    await eventually(() => Buffer.from(this.stdout.bytes).includes(sought), { what: `"${text}"` })
  }

  /** Also ends the session, so that it does not affect the next test. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { session } = this.handle
    this.handle.detach()
    if (session !== undefined) await endSession(this.#server, session)
  }

  #consume(deliver: () => void): void {
    if (this.#isFrozen) this.#held.push(deliver)
    else deliver()
  }
}

/** Ends a session if it still exists. */
export async function endSession(server: WireServer, session: string): Promise<void> {
  const response = await server.fetch(`/sessions/${session}`, { method: 'DELETE' }).catch(() => undefined)
  await response?.body?.cancel()
}

export interface ShellOptions extends AttachedOptions {
  readonly mode?: 'pipe' | 'pty'
  readonly keepSeconds?: number
  readonly overflow?: 'block' | 'trim'
}

/** Starts a shell script and attaches to it. */
export function runShell(server: WireServer, script: string, options: ShellOptions = {}): Attached {
  const { mode = 'pipe', keepSeconds = 60, overflow, ...rest } = options
  const request = { cmd: 'sh', args: ['-c', script], mode, keepSeconds }
  return new Attached(server, overflow === undefined ? request : { ...request, overflow }, rest)
}

/** Runs a script and returns its output. */
export async function readShell(server: WireServer, script: string): Promise<string> {
  await using client = runShell(server, script)
  await client.exit
  return client.text
}
