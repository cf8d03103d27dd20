import { signalNumber } from '@sandwire/protocol'
import { Child, type ExitStatus } from '../tree/child.ts'
import { DrainTimer } from '../drain-timer.ts'
import type { TerminationTimeouts } from '../tree/terminate-tree.ts'
import { closeFd, kill } from '../linux/libc.ts'
import type { ProcessEvents, ProcessSpec, RunningProcess, SpawnFailure, StartOptions } from '../process.ts'
import {
  foregroundGroup,
  isTerminalSignal,
  openPty,
  type PtyDevice,
  raiseTerminalSignal,
} from './pty-device.ts'
import { PtyInput } from './pty-input.ts'
import { fail, isFailure, type ResolvedCommand } from '../resolve-command.ts'
import { type TerminalLoop, TerminalReader } from './terminal-reader.ts'

/** Most bytes of a keystroke; more is a paste, whose echo takes longer than is worth waiting for. */
const KEY_BYTES = 32

/** Starts a process on a terminal of its own; `setsidFile` makes that its controlling terminal. */
export function startPtyProcess(
  command: ResolvedCommand,
  spec: ProcessSpec,
  events: ProcessEvents,
  options: StartOptions & { readonly setsidFile: string | null; readonly terminals: TerminalLoop },
): RunningProcess | SpawnFailure {
  const { setsidFile } = options
  if (setsidFile === null) return fail('spawn_failed', spec.argv[0], '"setsid" is not installed')
  const device = openPty(spec.cols, spec.rows)
  if (typeof device === 'number') return fail('spawn_failed', spec.argv[0], 'the system has no free terminal')
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
  return new PtyProcess({ child, device, events, options, terminals: options.terminals })
}

/** `setsid` searches the same PATH we did, so the program keeps the name it was called by. */
function leaderArgv(command: ResolvedCommand, spec: ProcessSpec): readonly string[] {
  return spec.env['PATH'] === undefined ? [command.file, ...spec.argv.slice(1)] : spec.argv
}

class PtyProcess implements RunningProcess {
  readonly #child: Child
  readonly #events: ProcessEvents
  readonly #masterFd: number
  /** Kept open until the leader has exited, so that the terminal does not hang up when the leader reopens it. */
  readonly #slaveFd: number
  readonly #input: PtyInput
  readonly #reader: TerminalReader
  readonly #drain: DrainTimer
  /** How the leader ended, once it has. */
  #status: ExitStatus | undefined
  #hasEnded = false

  constructor(parts: {
    child: Child
    device: PtyDevice
    events: ProcessEvents
    options: StartOptions
    terminals: TerminalLoop
  }) {
    const { child, device, events, options, terminals } = parts
    this.#child = child
    this.#events = events
    this.#masterFd = device.masterFd
    this.#slaveFd = device.slaveFd
    this.#input = new PtyInput(device.masterFd, {
      settled: (bytes) => events.inputSettled(bytes),
      refused: (reason) => events.inputRefused(reason),
      closed: () => events.inputClosed(),
    })
    this.#reader = new TerminalReader(device.masterFd, terminals, {
      chunk: (bytes) => this.#deliver(bytes),
      ended: () => this.#finish(false),
    })
    this.#drain = new DrainTimer(options, {
      isQuiet: () => this.#reader.poll(),
      expired: () => this.#finish(true),
    })
    void child.exited.then((status) => this.#exited(status))
  }

  get pid(): number {
    return this.#child.pid
  }

  write(chunk: Uint8Array): void {
    if (this.#hasEnded) return
    if (chunk.byteLength > KEY_BYTES) this.#input.write(chunk)
    else this.#reader.writeAndAwaitEcho(() => this.#input.write(chunk))
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

  isReadingSecret(): boolean {
    return !this.#hasEnded && this.#input.isReadingSecret
  }

  pause(): void {
    this.#drain.pause()
    this.#reader.pause()
  }

  resume(): void {
    this.#drain.resume()
    this.#reader.resume()
  }

  terminate(timeouts?: TerminationTimeouts): Promise<void> {
    return this.#child.terminate(timeouts)
  }

  /**
   * The leader has exited, descendants may still write. From now on a read of the master fails exactly when no process has
   * the terminal open and everything written has been read.
   */
  #exited(status: ExitStatus): void {
    this.#status = status
    closeFd(this.#slaveFd)
    this.#drain.start()
  }

  #deliver(bytes: Uint8Array): void {
    this.#events.output('stdout', bytes)
    if (!this.#drain.chunk(bytes.byteLength)) this.#finish(true)
  }

  #finish(truncated: boolean): void {
    const status = this.#status
    if (this.#hasEnded || status === undefined) return
    this.#hasEnded = true
    this.#drain.stop()
    this.#input.abandon()
    this.#reader.stop()
    closeFd(this.#masterFd)
    this.#events.ended({ ...status, truncated })
  }
}
