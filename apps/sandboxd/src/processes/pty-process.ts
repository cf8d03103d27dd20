import { signalNumber } from '@sandwire/protocol'
import { Child, type ExitStatus } from './child.ts'
import { DrainTimer } from './drain-timer.ts'
import { closeFd, EAGAIN, EINTR, kill, readFd } from './libc.ts'
import { OutputReader } from './output-reader.ts'
import type { ProcessEvents, ProcessSpec, RunningProcess, SpawnFailure } from './process.ts'
import { foregroundGroup, openPty, openSlave, type PtyDevice, raiseTerminalSignal } from './pty-device.ts'
import { PtyInput } from './pty-input.ts'
import { fail, isFailure, type ResolvedCommand } from './resolve-command.ts'
import { isTerminalSignal } from './signals.ts'
import type { StartOptions } from './start-options.ts'

/** How often a terminal that descendants hold after the leader's exit is asked whether they have let go. */
const HOLDER_POLL_MS = 20
/** Room for what one look at the terminal may find. */
const LOOK_BYTES = 64 * 1024

/** Starts a process on a terminal of its own; `setsidFile` makes that its controlling terminal. */
export function startPtyProcess(
  command: ResolvedCommand,
  spec: ProcessSpec,
  events: ProcessEvents,
  options: StartOptions & { readonly setsidFile: string | null },
): RunningProcess | SpawnFailure {
  const { setsidFile } = options
  if (setsidFile === null) return fail('spawn_failed', spec.argv[0], '"setsid" is not installed')
  const device = openPty(spec.cols, spec.rows)
  if (typeof device === 'number') return fail('spawn_failed', spec.argv[0], 'no terminal can be opened')
  const { slaveFd } = device
  const child = Child.spawn(
    {
      spec,
      file: setsidFile,
      argv: [setsidFile, '-c', '--', ...leaderArgv(command, spec)],
      stdio: [slaveFd, slaveFd, slaveFd],
      // setsid forks when it already leads a group, and then its pid is not the leader's.
      leadsSession: false,
    },
    options,
  )
  if (isFailure(child)) {
    closeFd(device.masterFd)
    closeFd(slaveFd)
    return child
  }
  return new PtyProcess({ child, device, events, options })
}

/** `setsid` searches the same PATH we did, so the program keeps the name it was called by. */
function leaderArgv(command: ResolvedCommand, spec: ProcessSpec): readonly string[] {
  return spec.env['PATH'] === undefined ? [command.file, ...spec.argv.slice(1)] : spec.argv
}

class PtyProcess implements RunningProcess {
  readonly #child: Child
  readonly #events: ProcessEvents
  readonly #masterFd: number
  /** Held so that the master never reports a hang-up to Bun's reader, which could lose what it had read. */
  #slaveFd: number
  readonly #input: PtyInput
  readonly #reader: OutputReader
  readonly #drain: DrainTimer
  #isPaused = false
  /** How the leader ended, once it has. */
  #status: ExitStatus | undefined
  #hasEnded = false
  #look: NodeJS.Immediate | undefined

  constructor(parts: { child: Child; device: PtyDevice; events: ProcessEvents; options: StartOptions }) {
    const { child, device, events, options } = parts
    this.#child = child
    this.#events = events
    this.#masterFd = device.masterFd
    this.#slaveFd = device.slaveFd
    this.#input = new PtyInput(device.masterFd, {
      settled: (bytes) => events.inputSettled(bytes),
      refused: (reason, bytes) => events.inputRefused(reason, bytes),
      closed: () => events.inputClosed(),
    })
    this.#reader = new OutputReader(device.masterFd, {
      chunk: (bytes) => this.#deliver(bytes),
      ended: () => this.#lookSoon(),
    })
    this.#drain = new DrainTimer(
      { ...options, pollMs: HOLDER_POLL_MS },
      { isQuiet: () => this.#lookAtEnd(), expired: () => this.#finish(true) },
    )
    void child.exited.then((status) => this.#exited(status))
  }

  get pid(): number {
    return this.#child.pid
  }

  write(chunk: Uint8Array): void {
    if (!this.#hasEnded) this.#input.write(chunk)
  }

  closeInput(): void {
    this.#input.end()
  }

  resize(cols: number, rows: number): void {
    this.#input.resize(cols, rows)
  }

  signal(name: string): void {
    const signal = signalNumber(name)
    if (this.#hasEnded || signal === undefined) return
    const foreground = foregroundGroup(this.#masterFd)
    if (foreground > 0 && isTerminalSignal(name) && raiseTerminalSignal(this.#masterFd, signal)) return
    if (foreground > 0 && foreground !== this.pid) kill(-foreground, signal)
    this.#child.signalGroup(signal)
  }

  pause(): void {
    this.#isPaused = true
    this.#drain.pause()
    this.#reader.pause()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#drain.resume()
    this.#reader.resume()
    this.#lookSoon()
  }

  terminate(): Promise<void> {
    return this.#child.terminate()
  }

  /** The leader is gone, descendants may still write. */
  #exited(status: ExitStatus): void {
    this.#status = status
    this.#drain.start()
    if (!this.#isPaused) this.#lookAtEnd()
  }

  #deliver(bytes: Uint8Array): void {
    this.#events.output('stdout', bytes)
    if (!this.#drain.chunk(bytes.byteLength)) this.#finish(true)
    else this.#lookSoon()
  }

  /** After the reader has had its turn, so that what it holds goes out first. */
  #lookSoon(): void {
    if (this.#status === undefined || this.#hasEnded) return
    this.#look ??= setImmediate(() => {
      this.#look = undefined
      this.#lookAtEnd()
    })
  }

  /**
   * Finds out whether anybody still has the terminal open; true when somebody has and nothing is readable.
   *
   * With our own descriptor closed, a read on the master answers EIO exactly when every other one is closed and all
   * that was written has been read. Otherwise ours is opened again before Bun's reader can run.
   */
  #lookAtEnd(): boolean {
    if (this.#hasEnded || this.#isPaused || !this.#reader.isDrained) return false
    closeFd(this.#slaveFd)
    const buffer = new Uint8Array(LOOK_BYTES)
    let hasRead = false
    while (!this.#hasEnded && !this.#isPaused) {
      const count = readFd(this.#masterFd, buffer)
      if (count === -EINTR) continue
      if (count > 0) {
        hasRead = true
        this.#deliver(buffer.slice(0, count))
      } else if (count === -EAGAIN) {
        break
      } else {
        this.#slaveFd = -1
        this.#finish(false)
        return false
      }
    }
    this.#slaveFd = this.#hasEnded ? -1 : openSlave(this.#masterFd)
    return !hasRead
  }

  #finish(truncated: boolean): void {
    const status = this.#status
    if (this.#hasEnded || status === undefined) return
    this.#hasEnded = true
    this.#drain.stop()
    clearImmediate(this.#look)
    this.#input.abandon()
    if (this.#slaveFd >= 0) closeFd(this.#slaveFd)
    this.#slaveFd = -1
    void this.#reader.stop().then(() => closeFd(this.#masterFd))
    this.#events.ended({ ...status, truncated })
  }
}
