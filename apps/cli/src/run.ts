import { isatty } from 'node:tty'
import { attach, type AttachHandle } from '@sandwire/client'
import { type ErrorCode, type Exit, isErrorCode, limits, SandwireError } from '@sandwire/protocol'
import type { RunOptions } from './arguments.ts'
import { comeBackLine, spellSeconds } from './come-back.ts'
import {
  EXIT_DETACHED,
  EXIT_FAILURE,
  EXIT_USAGE,
  exitCodeOf,
  exitCodeOfError,
  exitCodeOfSignal,
} from './exit-code.ts'
import { hintFor } from './hints.ts'
import { pumpPipe, pumpTyping } from './input-pump.ts'
import { FLASH_MS, LinkWatch } from './link-watch.ts'
import { LocalScreen } from './local-screen.ts'
import { printable } from './printable.ts'
import { collectEnv } from './process-env.ts'
import { STOP_SIGNALS, type StopSignal, StopSignals } from './stop-signals.ts'
import { readToken } from './token.ts'
import { readWindowSize, watchWindowSize } from './window-size.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** How long to try before the first welcome: somebody waits at a prompt. */
const CONNECT_FOR_MS = 5_000
/** How long a goodbye may take. */
const GOODBYE_MS = 1_000
/** How long the remote may take to end after its reader is gone. */
const BROKEN_PIPE_MS = 2_000

/** The command could not be run. */
const START_FAILURES: ReadonlySet<ErrorCode> = new Set([
  'command_not_found',
  'command_not_executable',
  'spawn_failed',
])

/** Why this program leaves a session that goes on. */
type Departure = 'escape' | 'SIGPIPE' | StopSignal

/** How it ended. */
type Outcome =
  | { readonly is: 'exited'; readonly exit: Exit }
  | { readonly is: 'left'; readonly why: Departure }
  | { readonly is: 'failed'; readonly error: SandwireError }

/** Runs until the remote process ends, the link is lost for good, or the user leaves; returns the exit code. */
export async function run(options: RunOptions, env: Environment): Promise<number> {
  const sources = { token: options.token, tokenFile: options.tokenFile, environment: env['SBX_TOKEN'] }
  const reading = readToken(sources)
  if (!reading.isOk) {
    process.stderr.write(`sbx-stdio: ${reading.message}\nhint: ${reading.hint}\n`)
    return EXIT_USAGE
  }
  const bearer = (): string | undefined => {
    // A token file may be renewed while this runs; one that is gone leaves the token that was there.
    const again = readToken(sources)
    return again.isOk ? again.token : reading.token
  }
  using program = new Program(options, env, bearer)
  return await program.run()
}

/** One attachment of this terminal or pipe. */
class Program implements Disposable {
  readonly #options: RunOptions
  readonly #bearer: () => string | undefined
  readonly #screen: LocalScreen
  readonly #handle: AttachHandle
  readonly #signals = new StopSignals()
  readonly #undo = new DisposableStack()
  /** Undefined until the first welcome. */
  #mode: 'pipe' | 'pty' | undefined
  #departure: Departure | undefined
  /** The command could not be run; its exit follows. */
  #startFailure: SandwireError | undefined
  /** Errno of a write that failed for another reason than a reader that left. */
  #writeFault: string | undefined
  #isReading = false
  #isRefusalTold = false

  constructor(options: RunOptions, env: Environment, bearer: () => string | undefined) {
    this.#options = options
    this.#bearer = bearer
    this.#screen = this.#undo.use(
      new LocalScreen(
        { isTalkative: !options.isQuiet },
        {
          stdoutBroken: (code) => this.#stdoutBroken(code),
          damaged: () => this.#askForRepaint(),
        },
      ),
    )
    this.#listen()
    this.#handle = this.#attach(env)
    const role = options.role ?? 'driver'
    this.#undo.use(
      new LinkWatch(this.#handle, this.#screen.line, {
        host: options.url.host,
        leave: () => this.#wayOut(),
        role,
      }),
    )
    this.#undo.defer(this.#handle.status.subscribe((status) => status.is === 'attached' && this.#attached()))
  }

  async run(): Promise<number> {
    const outcome = await this.#outcome()
    await this.#screen.endMirror()
    return this.#conclude(outcome)
  }

  [Symbol.dispose](): void {
    this.#undo.dispose()
  }

  #attach(env: Environment): AttachHandle {
    const { options } = { options: this.#options }
    const isPty = options.isTty ?? (isatty(0) && isatty(1))
    const name = options.name ?? printable(env['USER'] ?? '').slice(0, limits.MAX_NAME_CHARS)
    const optional = <K extends string, V>(key: K, value: V | undefined) =>
      value === undefined ? {} : { [key]: value }
    return attach({
      url: options.url,
      request: {
        args: options.args,
        take: options.isTaking,
        mode: isPty ? 'pty' : 'pipe',
        ...optional('sandbox', options.sandbox),
        ...optional('session', options.session),
        ...optional('cmd', options.cmd),
        ...optional('cwd', options.cwd),
        ...optional('role', options.role),
        ...optional('keepSeconds', options.keepSeconds),
        ...optional('overflow', options.overflow),
      },
      ...readWindowSize(),
      env: collectEnv(env, options.env, isPty),
      name,
      credentials: () => Promise.resolve(this.#credentials()),
      connectForMs: Math.min(CONNECT_FOR_MS, options.retryForMs),
      retryForMs: options.retryForMs,
      onOutput: (stream, bytes) => this.#screen.output(stream, bytes),
      onScreen: (screen) => this.#screen.draw(screen),
      onGap: (from, to) => this.#gap(to - from),
      onResized: (cols, rows) => this.#resized(cols, rows),
      onWarning: (code, message) => this.#warned(code, message),
    })
  }

  #credentials(): { headers?: Record<string, string> } {
    const token = this.#bearer()
    return token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }
  }

  #listen(): void {
    const on = (signal: NodeJS.Signals, listener: () => void): void => {
      process.on(signal, listener)
      this.#undo.defer(() => process.off(signal, listener))
    }
    for (const signal of STOP_SIGNALS) on(signal, () => this.#stopSignal(signal))
    this.#undo.use(watchWindowSize(({ cols, rows }) => this.#handle.resize(cols, rows)))
    on('SIGTSTP', () => {
      this.#screen.suspend()
      process.kill(process.pid, 'SIGSTOP')
    })
    on('SIGCONT', () => {
      this.#screen.resume()
      this.#askForRepaint()
    })
    // Whatever happens, the terminal is put right.
    process.on('exit', () => this.#screen[Symbol.dispose]())
    process.on('uncaughtException', (error) => this.#crashed(error))
    process.on('unhandledRejection', (error) => this.#crashed(error))
  }

  #crashed(error: unknown): void {
    this.#screen[Symbol.dispose]()
    const what = printable(error instanceof Error ? error.message : String(error))
    process.stderr.write(
      `sbx-stdio: Internal error: ${what}\nhint: this is a fault of sbx-stdio; please report it\n`,
    )
    process.exit(EXIT_FAILURE)
  }

  #attached(): void {
    if (this.#mode === undefined) {
      this.#mode = this.#handle.details?.mode ?? 'pipe'
      if (this.#mode === 'pty') this.#screen.beginMirror()
    }
    if (this.#isReading || (this.#handle.role === 'viewer' && !this.#screen.hasKeys)) return
    this.#isReading = true
    const stdin = Bun.stdin.stream()
    if (!this.#screen.hasKeys) void pumpPipe(this.#handle, stdin)
    else {
      const events = { escaped: () => this.#leave('escape'), refused: () => this.#tellRefusal() }
      void pumpTyping(this.#handle, stdin, { escape: this.#options.escape, events })
    }
  }

  #stopSignal(signal: StopSignal): void {
    const { is } = this.#handle.status.get()
    const state = this.#mode === undefined ? 'connecting' : is === 'attached' ? 'attached' : 'down'
    const canForward = this.#mode === 'pipe' && this.#handle.role === 'driver'
    if (this.#signals.receive(state, canForward, performance.now()) === 'leave') this.#leave(signal)
    else this.#handle.signal(signal)
  }

  /** Nobody reads our output any more. What we started gets the signal that a local pipe would give it. */
  #stdoutBroken(code: string): void {
    const isOurs =
      this.#options.session === undefined && this.#mode === 'pipe' && this.#handle.role === 'driver'
    if (this.#mode === 'pipe' && code !== 'EPIPE') this.#writeFault = code
    const why = this.#mode === 'pty' && code !== 'EPIPE' ? 'SIGHUP' : 'SIGPIPE'
    if (!isOurs) {
      this.#leave(why)
      return
    }
    this.#handle.signal('SIGPIPE')
    const timer = setTimeout(() => this.#leave(why), BROKEN_PIPE_MS)
    this.#undo.defer(() => clearTimeout(timer))
  }

  #leave(why: Departure): void {
    this.#departure ??= why
    this.#handle.detach()
  }

  /** Two changes of size make every full-screen program paint again. */
  #askForRepaint(): void {
    if (this.#mode !== 'pty' || this.#handle.role !== 'driver') return
    const { cols, rows } = readWindowSize()
    this.#handle.resize(cols, Math.max(1, rows - 1))
    this.#handle.resize(cols, rows)
  }

  /** A command that cannot be started is told at the end, with its exit code; anything else at once. */
  #warned(code: string, message: string): void {
    if (isErrorCode(code) && START_FAILURES.has(code)) this.#startFailure = new SandwireError(code, message)
    else if (this.#screen.hasKeys) this.#screen.line.flash(`sbx-stdio: ${printable(message)}`, FLASH_MS)
    else if (!this.#options.isQuiet) void this.#screen.say(`sbx-stdio: ${printable(message)}`)
  }

  #gap(bytes: number): void {
    if (this.#mode === 'pty' || this.#options.isQuiet) return
    void this.#screen.say(`sbx-stdio: ${bytes} bytes of output are lost: nobody read them in time`)
  }

  #resized(cols: number, rows: number): void {
    const own = readWindowSize()
    if (this.#handle.role === 'driver' || (own.cols >= cols && own.rows >= rows)) return
    this.#screen.line.flash(
      `sbx-stdio: the session is ${cols}x${rows}, this terminal ${own.cols}x${own.rows}`,
      FLASH_MS,
    )
  }

  #tellRefusal(): void {
    if (this.#isRefusalTold) return
    this.#isRefusalTold = true
    this.#screen.line.flash(`sbx-stdio: read-only, you are watching (${this.#wayOut()})`, FLASH_MS)
  }

  #wayOut(): string {
    if (!this.#screen.hasKeys) return 'Ctrl+C twice leaves'
    return `${this.#options.escape?.label ?? (this.#handle.role === 'viewer' ? 'Ctrl+C' : 'kill')} leaves`
  }

  async #outcome(): Promise<Outcome> {
    try {
      return { is: 'exited', exit: await this.#handle.exit }
    } catch (error) {
      if (this.#departure === undefined) return { is: 'failed', error: SandwireError.from(error) }
      await Promise.race([this.#handle.closed, Bun.sleep(GOODBYE_MS)])
      return { is: 'left', why: this.#departure }
    }
  }

  async #conclude(outcome: Outcome): Promise<number> {
    if (this.#writeFault !== undefined) {
      await this.#screen.say(
        `sbx-stdio: Cannot write to stdout: ${this.#writeFault}`,
        'hint: check where the output goes',
      )
      return EXIT_FAILURE
    }
    switch (outcome.is) {
      case 'exited':
        if (this.#startFailure !== undefined) await this.#tellFailure(this.#startFailure)
        return exitCodeOf(outcome.exit)
      case 'left':
        await this.#tellDeparture()
        return outcome.why === 'escape' ? EXIT_DETACHED : exitCodeOfSignal(outcome.why)
      case 'failed':
        await this.#tellFailure(outcome.error)
        return exitCodeOfError(outcome.error)
    }
  }

  async #tellDeparture(): Promise<void> {
    const { session, details } = this.#handle
    if (session === undefined || details === undefined || this.#options.isQuiet) return
    const start = this.#mode === 'pty' ? '\n' : ''
    if (details.keepSeconds === 0) {
      await this.#screen.say(`${start}sbx-stdio: detached; the session is not kept`)
      return
    }
    const kept = spellSeconds(details.keepSeconds)
    await this.#screen.say(
      `${start}sbx-stdio: detached; the session is kept for ${kept}, come back with:`,
      comeBackLine(this.#options, session),
    )
  }

  async #tellFailure(error: SandwireError): Promise<void> {
    const { session, details } = this.#handle
    const isKept = session !== undefined && details !== undefined && details.keepSeconds > 0
    const comeBack = isKept ? comeBackLine(this.#options, session) : undefined
    const url = this.#options.typedUrl
    const hint = hintFor(error.code, { url, hasToken: this.#bearer() !== undefined, comeBack })
    const what = session !== undefined && error.code === 'link_lost' ? 'Lost the connection for good: ' : ''
    const start = this.#mode === 'pty' ? '\n' : ''
    await this.#screen.say(`${start}sbx-stdio: ${what}${printable(error.message)}`, `hint: ${hint}`)
  }
}
