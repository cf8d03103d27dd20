import { isatty } from 'node:tty'
import { attach, type AttachHandle, type Screen } from '@sandwire/client'
import {
  type ErrorCode,
  type Exit,
  isErrorCode,
  limits,
  SandwireError,
  type StopReason,
} from '@sandwire/protocol'
import type { RunOptions } from '../options/attach-options.ts'
import { collectEnv, createRequest } from './attach-request.ts'
import { programName } from '../text/command-line.ts'
import {
  describeOutcome,
  type OutcomeContext,
  type DetachReason,
  type Outcome,
  type StopNotice,
} from './outcome.ts'
import { EXIT_FAILURE, exitCodeOfSignal } from '../errors/exit-code.ts'
import type { Access } from '../server/find-server.ts'
import { pumpPipe, pumpTyping } from './input-pump.ts'
import { ConnectionNotices, SessionNotices } from './notices.ts'
import { LocalScreen } from './local-screen.ts'
import { withPlainHttpCheck } from '../server/plain-server.ts'
import { printable } from '../text/printable.ts'
import { STOP_SIGNALS, type StopSignal, StopSignals } from './stop-signals.ts'
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

/** One attachment of this terminal or pipe. */
export class Program implements Disposable {
  readonly #options: RunOptions
  readonly #env: Environment
  readonly #access: Access
  readonly #screen: LocalScreen
  readonly #remarks: SessionNotices
  readonly #handle: AttachHandle
  readonly #signals = new StopSignals()
  readonly #undo = new DisposableStack()
  /** Undefined until the first welcome. */
  #mode: 'pipe' | 'pty' | undefined
  #departure: DetachReason | undefined
  /** The command could not be run; its exit follows. */
  #startFailure: SandwireError | undefined
  /** What the server said last about a sandbox that it stops. */
  #stopNotice: StopNotice | undefined
  /** Errno of a write that failed for another reason than a reader that left. */
  #writeFault: string | undefined
  /** The token of the last connection. */
  #shown: string | undefined
  #isReading = false

  /** Throws `UsageError` before anything happens. */
  constructor(options: RunOptions, env: Environment, access: Access) {
    const isPty = options.isTty ?? (isatty(0) && isatty(1))
    const sent = collectEnv(env, options.env, isPty)
    this.#options = options
    this.#env = env
    this.#access = access
    const events = {
      stdoutFailed: (errno: string) => this.#stdoutBroken(errno),
      repaintNeeded: () => this.#askForRepaint(),
    }
    this.#screen = this.#undo.use(
      new LocalScreen({ isVerbose: !options.isQuiet && env['TERM'] !== 'dumb' }, events),
    )
    this.#remarks = new SessionNotices(this.#screen, options, () => this.#handle.role)
    this.#listen()
    this.#handle = this.#attach(isPty, sent)
    const context = {
      host: options.url.host,
      leave: () => this.#remarks.detachHint(),
      role: options.role ?? 'driver',
    }
    this.#undo.use(new ConnectionNotices(this.#handle, this.#screen.line, context))
    this.#undo.defer(this.#handle.status.subscribe((status) => status.is === 'attached' && this.#attached()))
  }

  async run(): Promise<number> {
    const outcome = await this.#outcome()
    const { code, lines } = describeOutcome(outcome, this.#context())
    const isMidLine = this.#mode === 'pty' && lines.length > 0
    const flushed = this.#screen
      .stopMirroring()
      .then(() => this.#screen.say(...(isMidLine ? ['', ...lines] : lines)))
    // Whoever leaves does not wait for a reader that has stopped; everybody else's output goes out to the last byte.
    await (outcome.is === 'left' ? Promise.race([flushed, Bun.sleep(GOODBYE_MS)]) : flushed)
    return code
  }

  [Symbol.dispose](): void {
    this.#undo.dispose()
  }

  #attach(isPty: boolean, env: Readonly<Record<string, string>>): AttachHandle {
    const options = this.#options
    return attach({
      url: options.url,
      request: createRequest(options, isPty),
      ...readWindowSize(),
      env,
      name: options.name ?? printable(this.#env['USER'] ?? '').slice(0, limits.MAX_NAME_CHARS),
      credentials: () => this.#credentials(),
      renewCredentials: () => this.#renewCredentials(),
      connectForMs: Math.min(CONNECT_FOR_MS, options.retryForMs),
      retryForMs: options.retryForMs,
      onOutput: (stream, bytes) => this.#screen.output(stream, bytes),
      onScreen: (screen) => this.#draw(screen),
      // On a terminal a screen follows, and nothing is missing from it.
      onGap: (from, to) => this.#mode === 'pipe' && this.#remarks.lost(to - from),
      onResized: (cols, rows) => this.#remarks.resized(cols, rows),
      onWarning: (code, message, stopReason) => this.#warned(code, message, stopReason),
    })
  }

  #draw(screen: Screen): Promise<void> {
    const drawn = this.#screen.draw(screen)
    this.#remarks.resized(screen.cols, screen.rows)
    return drawn
  }

  async #credentials(): Promise<{ headers?: Record<string, string> }> {
    const token = await this.#access.bearer()
    this.#shown = token
    return token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }
  }

  async #renewCredentials(): Promise<boolean> {
    return this.#shown !== undefined && (await this.#access.renew?.(this.#shown)) === true
  }

  #listen(): void {
    const on = (signal: NodeJS.Signals, listener: () => void): void => {
      process.on(signal, listener)
      this.#undo.defer(() => process.off(signal, listener))
    }
    for (const signal of STOP_SIGNALS) on(signal, () => this.#stopSignal(signal))
    on('SIGTSTP', () => {
      this.#screen.suspend()
      process.kill(process.pid, 'SIGSTOP')
    })
    on('SIGCONT', () => {
      this.#screen.resume()
      this.#askForRepaint()
    })
    this.#undo.use(watchWindowSize(({ cols, rows }) => this.#handle.resize(cols, rows)))
    // Whatever happens, the terminal is put right.
    process.on('exit', () => this.#screen[Symbol.dispose]())
    process.on('uncaughtException', (error) => this.#crashed(error))
    process.on('unhandledRejection', (error) => this.#crashed(error))
  }

  #crashed(error: unknown): void {
    this.#screen[Symbol.dispose]()
    const what = printable(error instanceof Error ? error.message : String(error))
    process.stderr.write(
      `\nsbx-stdio: Internal error: ${what}\nhint: this is a fault of sbx-stdio; please report it\n`,
    )
    process.exit(EXIT_FAILURE)
  }

  #attached(): void {
    if (this.#mode === undefined) {
      this.#mode = this.#handle.details?.mode ?? 'pipe'
      if (this.#mode === 'pty') this.#screen.startMirroring()
    }
    if (this.#isReading || (this.#handle.role === 'viewer' && !this.#screen.hasKeys)) return
    this.#isReading = true
    const stdin = Bun.stdin.stream()
    const events = { escaped: () => this.#leave('escape'), refused: () => this.#remarks.refused() }
    if (this.#screen.hasKeys) void pumpTyping(this.#handle, stdin, { escape: this.#options.escape, events })
    else void pumpPipe(this.#handle, stdin)
  }

  #stopSignal(signal: StopSignal): void {
    const { is } = this.#handle.status.get()
    // All that is left is output which nobody takes.
    if (is === 'exited' || is === 'failed' || is === 'detached') process.exit(exitCodeOfSignal(signal))
    const state = this.#mode === undefined ? 'connecting' : is === 'attached' ? 'attached' : 'down'
    const canForward = this.#mode === 'pipe' && this.#handle.role === 'driver'
    if (this.#signals.receive(state, canForward, performance.now()) === 'leave') this.#leave(signal)
    else this.#handle.signal(signal)
  }

  /** Nobody takes our output any more. What we started gets the signal that a local pipe would give it. */
  #stdoutBroken(errno: string): void {
    const isPipe = this.#mode === 'pipe'
    if (isPipe && errno !== 'EPIPE') this.#writeFault = errno
    const why = isPipe || errno === 'EPIPE' ? 'SIGPIPE' : 'SIGHUP'
    const isOurs = isPipe && this.#options.session === undefined && this.#handle.role === 'driver'
    if (!isOurs) {
      this.#leave(why)
      return
    }
    this.#handle.signal('SIGPIPE')
    const timer = setTimeout(() => this.#leave(why), BROKEN_PIPE_MS)
    this.#undo.defer(() => clearTimeout(timer))
  }

  #leave(why: DetachReason): void {
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

  /** A command that cannot be started, and a sandbox that stops, are told at the end; anything else at once. */
  #warned(code: string, message: string, reason: StopReason | undefined): void {
    if (isErrorCode(code) && START_FAILURES.has(code)) this.#startFailure = new SandwireError(code, message)
    else if (code === 'shutting_down') {
      this.#stopNotice = { message, reason }
      this.#remarks.flash(message)
    } else this.#remarks.say(message)
  }

  /** The exit of the process, unless the server turns out to be one that cannot be reached this way. */
  #exit(): Promise<Exit> {
    const isSettled = (): boolean => this.#mode !== undefined || this.#departure !== undefined
    const orStop = (plainHttp: AbortSignal): Promise<Exit> => {
      plainHttp.addEventListener('abort', () => this.#handle.detach(), { once: true })
      return this.#handle.exit
    }
    return withPlainHttpCheck(this.#options.typedUrl, orStop, { isSettled })
  }

  async #outcome(): Promise<Outcome> {
    try {
      const exit = await this.#exit()
      if (this.#writeFault !== undefined) return { is: 'unwritable', errno: this.#writeFault }
      return { is: 'exited', exit, startFailure: this.#startFailure }
    } catch (error) {
      if (this.#departure === undefined) return { is: 'failed', error: SandwireError.from(error) }
      await Promise.race([this.#handle.closed, Bun.sleep(GOODBYE_MS)])
      if (this.#writeFault !== undefined) return { is: 'unwritable', errno: this.#writeFault }
      return { is: 'left', why: this.#departure }
    }
  }

  #context(): OutcomeContext {
    const { session: id, details } = this.#handle
    return {
      options: this.#options,
      credential: this.#access.credential,
      program: programName(this.#env),
      stopNotice: this.#stopNotice,
      session: id === undefined || details === undefined ? undefined : { id, details },
    }
  }
}
