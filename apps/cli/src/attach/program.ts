import { isatty } from 'node:tty'
import { raceTimeout } from '@sandwire/async'
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
import { findRestoredNotice } from './restored-notice.ts'
import { createApi } from '../server/api.ts'
import { originOf } from '../server/known-servers.ts'
import { sandboxIdOf } from '../commands/session-id.ts'
import {
  describeOutcome,
  type OutcomeContext,
  type DetachReason,
  type Outcome,
  type StopNotice,
} from './outcome.ts'
import { EXIT_FAILURE, exitCodeOfSignal } from '../errors/exit-code.ts'
import type { ServerCredential } from '../server/find-server.ts'
import { pumpPipe, pumpTyping } from './input-pump.ts'
import { ConnectionNotices, SessionNotices } from './notices.ts'
import { LocalScreen } from './local-screen.ts'
import { withPlainHttpCheck } from '../server/probe-server.ts'
import { printable } from '../text/printable.ts'
import { TERMINATION_SIGNALS, type TerminationSignal, TerminationSignals } from './termination-signals.ts'
import { readTerminalSize, watchTerminalSize } from './terminal-size.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** How long to try the first connection: the user is waiting. */
const CONNECT_FOR_MS = 5_000
/** How long detaching may take. */
const DETACH_TIMEOUT_MS = 1_000
/** How long the notice about restored files is shown. */
const RESTORED_SHOWN_MS = 10_000
/** How long a command that has ended waits for that notice. */
const RESTORED_TIMEOUT_MS = 500
/** How long the remote process may take to exit after SIGPIPE. */
const SIGPIPE_TIMEOUT_MS = 2_000

/** Errors that mean that the command could not be run. */
const START_FAILURES: ReadonlySet<ErrorCode> = new Set([
  'command_not_found',
  'command_not_executable',
  'spawn_failed',
])

/** Attaches this terminal or pipe to one session. */
export class Program implements Disposable {
  readonly #options: RunOptions
  readonly #env: Environment
  readonly #credential: ServerCredential
  readonly #screen: LocalScreen
  readonly #notices: SessionNotices
  readonly #handle: AttachHandle
  readonly #signals = new TerminationSignals()
  readonly #undo = new DisposableStack()
  /** Undefined until the first attach succeeded. */
  #mode: 'pipe' | 'pty' | undefined
  #detachReason: DetachReason | undefined
  /** Set when the command could not be run; its exit follows. */
  #startFailure: SandwireError | undefined
  /** The last notice of the server that it stops the sandbox. */
  #stopNotice: StopNotice | undefined
  /** Errno of a failed write to stdout, except for a closed pipe. */
  #writeErrno: string | undefined
  /** The token of the last connection. */
  #sentToken: string | undefined
  #isReading = false
  /** Resolves when the user knows whether files were lost. */
  #restoredShown = Promise.resolve()
  /** Why the last connection got no token. */
  #credentialError: unknown

  /** Throws `UsageError` before it changes the terminal. */
  constructor(options: RunOptions, env: Environment, credential: ServerCredential) {
    const isPty = options.isTty ?? (isatty(0) && isatty(1))
    const remoteEnv = collectEnv(env, options.env, isPty)
    this.#options = options
    this.#env = env
    this.#credential = credential
    const events = {
      stdoutFailed: (errno: string) => this.#stdoutBroken(errno),
      repaintNeeded: () => this.#requestRepaint(),
    }
    this.#screen = this.#undo.use(
      new LocalScreen({ isVerbose: !options.isQuiet && env['TERM'] !== 'dumb' }, events),
    )
    this.#notices = new SessionNotices(this.#screen, options, () => this.#handle.role)
    this.#listen()
    this.#handle = this.#attach(isPty, remoteEnv)
    const context = {
      host: options.url.host,
      detachHint: () => this.#notices.detachHint(),
      role: options.role ?? 'driver',
    }
    this.#undo.use(new ConnectionNotices(this.#handle, this.#screen.statusLine, context))
    this.#undo.defer(
      this.#handle.status.subscribe((status) => status.kind === 'attached' && this.#attached()),
    )
  }

  async run(): Promise<number> {
    const outcome = await this.#outcome()
    await raceTimeout(this.#restoredShown, RESTORED_TIMEOUT_MS, undefined)
    const { code, lines } = describeOutcome(outcome, this.#context())
    const isMidLine = this.#mode === 'pty' && lines.length > 0
    const flushed = this.#screen
      .stopMirroring()
      .then(() => this.#screen.print(...(isMidLine ? ['', ...lines] : lines)))
    // All output is written, except after detaching: the reader of stdout may have stalled.
    await (outcome.kind === 'detached' ? raceTimeout(flushed, DETACH_TIMEOUT_MS, undefined) : flushed)
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
      ...readTerminalSize(),
      env,
      name: options.name ?? printable(this.#env['USER'] ?? '').slice(0, limits.MAX_NAME_CHARS),
      credentials: () => this.#credentials(),
      renewCredentials: () => this.#renewCredentials(),
      connectForMs: Math.min(CONNECT_FOR_MS, options.retryForMs),
      retryForMs: options.retryForMs,
      onOutput: (stream, bytes) => this.#screen.output(stream, bytes),
      onScreen: (screen) => this.#draw(screen),
      // On a terminal a complete screen follows.
      onGap: (from, to) => this.#mode === 'pipe' && this.#notices.outputLost(to - from),
      onResized: (cols, rows) => this.#notices.resized(cols, rows),
      onWarning: (code, message, stopReason) => this.#warned(code, message, stopReason),
    })
  }

  #draw(screen: Screen): Promise<void> {
    const drawn = this.#screen.draw(screen)
    this.#notices.resized(screen.cols, screen.rows)
    return drawn
  }

  async #credentials(): Promise<{ headers?: Record<string, string> }> {
    const token = await this.#bearer()
    this.#sentToken = token
    return token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }
  }

  /** Keeps the error, of which the client passes on the code and message only. */
  async #bearer(): Promise<string | undefined> {
    this.#credentialError = undefined
    try {
      return await this.#credential.bearer()
    } catch (error) {
      this.#credentialError = error
      throw error
    }
  }

  async #renewCredentials(): Promise<boolean> {
    return this.#sentToken !== undefined && (await this.#credential.renew?.(this.#sentToken)) === true
  }

  #listen(): void {
    const on = (signal: NodeJS.Signals, listener: () => void): void => {
      process.on(signal, listener)
      this.#undo.defer(() => process.off(signal, listener))
    }
    for (const signal of TERMINATION_SIGNALS) on(signal, () => this.#onTerminationSignal(signal))
    on('SIGTSTP', () => {
      this.#screen.suspend()
      process.kill(process.pid, 'SIGSTOP')
    })
    on('SIGCONT', () => {
      this.#screen.resume()
      this.#requestRepaint()
    })
    this.#undo.use(watchTerminalSize(({ cols, rows }) => this.#handle.resize(cols, rows)))
    // The terminal is restored in any case.
    process.on('exit', () => this.#screen[Symbol.dispose]())
    process.on('uncaughtException', (error) => this.#crashed(error))
    process.on('unhandledRejection', (error) => this.#crashed(error))
  }

  #crashed(error: unknown): void {
    this.#screen[Symbol.dispose]()
    const what = printable(error instanceof Error ? error.message : String(error))
    process.stderr.write(
      `\nsbx-stdio: Internal error: ${what}\nhint: this is a bug in sbx-stdio; please report it\n`,
    )
    process.exit(EXIT_FAILURE)
  }

  #attached(): void {
    if (this.#mode === undefined) {
      this.#mode = this.#handle.details?.mode ?? 'pipe'
      this.#restoredShown = this.#showRestored()
      if (this.#mode === 'pty') this.#screen.startMirroring()
    }
    if (this.#isReading || (this.#handle.role === 'viewer' && !this.#screen.hasRawInput)) return
    this.#isReading = true
    const stdin = Bun.stdin.stream()
    const events = { escaped: () => this.#detach('escape'), refused: () => this.#notices.inputRefused() }
    if (this.#screen.hasRawInput)
      void pumpTyping(this.#handle, stdin, { escape: this.#options.escape, events })
    else void pumpPipe(this.#handle, stdin)
  }

  /** Says so when the sandbox was lost and started with older files. */
  async #showRestored(): Promise<void> {
    const { session, url, typedUrl } = this.#options
    const sandbox = sandboxIdOf(this.#handle.session ?? '')
    // A session that exists was there before; a sandboxd has no id of a sandbox.
    if (sandbox === undefined || session !== undefined) return
    const api = createApi({ origin: originOf(url), address: typedUrl, ...this.#credential })
    const notice = await findRestoredNotice(api, sandbox, Date.now())
    if (notice !== undefined) this.#notices.show(notice, RESTORED_SHOWN_MS)
  }

  #onTerminationSignal(signal: TerminationSignal): void {
    const { kind } = this.#handle.status.get()
    // Only output that is not being read is left.
    if (kind === 'exited' || kind === 'failed' || kind === 'detached') process.exit(exitCodeOfSignal(signal))
    const state = this.#mode === undefined ? 'connecting' : kind === 'attached' ? 'attached' : 'down'
    const canForward = this.#mode === 'pipe' && this.#handle.role === 'driver'
    if (this.#signals.receive(state, canForward, performance.now()) === 'detach') this.#detach(signal)
    else this.#handle.signal(signal)
  }

  /** stdout is closed. A command that we started gets SIGPIPE, as in a local pipe. */
  #stdoutBroken(errno: string): void {
    const isPipe = this.#mode === 'pipe'
    if (isPipe && errno !== 'EPIPE') this.#writeErrno = errno
    const reason = isPipe || errno === 'EPIPE' ? 'SIGPIPE' : 'SIGHUP'
    const isOurs = isPipe && this.#options.session === undefined && this.#handle.role === 'driver'
    if (!isOurs) {
      this.#detach(reason)
      return
    }
    this.#handle.signal('SIGPIPE')
    const timer = setTimeout(() => this.#detach(reason), SIGPIPE_TIMEOUT_MS)
    this.#undo.defer(() => clearTimeout(timer))
  }

  #detach(reason: DetachReason): void {
    this.#detachReason ??= reason
    this.#handle.detach()
  }

  /** Two resizes make a full-screen program repaint. */
  #requestRepaint(): void {
    if (this.#mode !== 'pty' || this.#handle.role !== 'driver') return
    const { cols, rows } = readTerminalSize()
    this.#handle.resize(cols, Math.max(1, rows - 1))
    this.#handle.resize(cols, rows)
  }

  /** Start failures and stop notices are reported at the end; other warnings at once. */
  #warned(code: string, message: string, reason: StopReason | undefined): void {
    if (isErrorCode(code) && START_FAILURES.has(code)) this.#startFailure = new SandwireError(code, message)
    else if (code === 'shutting_down') {
      this.#stopNotice = { message, reason }
      this.#notices.flash(message)
    } else this.#notices.show(message)
  }

  /** The exit of the process; throws if the address has the wrong protocol. */
  #exit(): Promise<Exit> {
    const isSettled = (): boolean => this.#mode !== undefined || this.#detachReason !== undefined
    const untilExit = (plainHttp: AbortSignal): Promise<Exit> => {
      plainHttp.addEventListener('abort', () => this.#handle.detach(), { once: true })
      return this.#handle.exit
    }
    return withPlainHttpCheck(this.#options.typedUrl, untilExit, { isSettled })
  }

  async #outcome(): Promise<Outcome> {
    try {
      const exit = await this.#exit()
      if (this.#writeErrno !== undefined) return { kind: 'unwritable', errno: this.#writeErrno }
      return { kind: 'exited', exit, startFailure: this.#startFailure }
    } catch (error) {
      if (this.#detachReason === undefined)
        return { kind: 'failed', error: SandwireError.from(this.#credentialError ?? error) }
      await raceTimeout(this.#handle.closed, DETACH_TIMEOUT_MS, undefined)
      if (this.#writeErrno !== undefined) return { kind: 'unwritable', errno: this.#writeErrno }
      return { kind: 'detached', reason: this.#detachReason }
    }
  }

  #context(): OutcomeContext {
    const { session: id, details } = this.#handle
    return {
      options: this.#options,
      credential: this.#credential.credential,
      program: programName(this.#env),
      stopNotice: this.#stopNotice,
      session: id === undefined || details === undefined ? undefined : { id, details },
    }
  }
}
