import { signalNumber } from '@sandwire/protocol'
import { Child, type ExitStatus } from '../tree/child.ts'
import { DrainTimer } from '../drain-timer.ts'
import type { TerminationTimeouts } from '../tree/terminate-tree.ts'
import { closeFd, readableBytes } from '../linux/libc.ts'
import { OutputReader } from './output-reader.ts'
import { PipeInput } from './pipe-input.ts'
import { openPipes, type Pipes } from './pipes.ts'
import type { ProcessEvents, ProcessSpec, RunningProcess, SpawnFailure, StartOptions } from '../process.ts'
import { fail, isFailure, type ResolvedCommand } from '../resolve-command.ts'

/** Starts a process on three real pipes. */
export function startPipeProcess(
  command: ResolvedCommand,
  spec: ProcessSpec,
  events: ProcessEvents,
  options: StartOptions,
): RunningProcess | SpawnFailure {
  const pipes = openPipes()
  if (pipes === undefined) return fail('spawn_failed', spec.argv[0], 'out of file descriptors')
  const child = Child.spawn(
    {
      spec,
      file: command.file,
      argv: spec.argv,
      stdio: pipes.child,
      leadsSession: true,
    },
    options,
  )
  for (const fd of pipes.child) closeFd(fd)
  if (isFailure(child)) {
    for (const fd of [pipes.stdin, pipes.stdout, pipes.stderr]) closeFd(fd)
    return child
  }
  return new PipeProcess({ child, pipes, events, options })
}

interface Output {
  readonly fd: number
  readonly reader: OutputReader
  isOpen: boolean
}

class PipeProcess implements RunningProcess {
  readonly #child: Child
  readonly #events: ProcessEvents
  readonly #input: PipeInput
  readonly #outputs: readonly Output[]
  readonly #drain: DrainTimer
  /** How the leader ended, once it has. */
  #status: ExitStatus | undefined
  #hasEnded = false

  constructor(parts: { child: Child; pipes: Pipes; events: ProcessEvents; options: StartOptions }) {
    const { child, pipes, events, options } = parts
    this.#child = child
    this.#events = events
    this.#input = new PipeInput(pipes.stdin, {
      settled: (bytes) => events.inputSettled(bytes),
      closed: () => events.inputClosed(),
    })
    this.#outputs = [this.#open('stdout', pipes.stdout), this.#open('stderr', pipes.stderr)]
    this.#drain = new DrainTimer(options, {
      isQuiet: () => this.#outputs.every(isQuiet),
      expired: () => this.#finish(true),
    })
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

  /** A pipe has no size. */
  resize(): void {}

  signal(name: string): void {
    const signal = signalNumber(name)
    if (!this.#hasEnded && signal !== undefined) this.#child.signalGroup(signal)
  }

  pause(): void {
    this.#drain.pause()
    for (const output of this.#outputs) output.reader.pause()
  }

  resume(): void {
    this.#drain.resume()
    for (const output of this.#outputs) output.reader.resume()
  }

  terminate(timeouts?: TerminationTimeouts): Promise<void> {
    return this.#child.terminate(timeouts)
  }

  /** The leader has exited, descendants may still write. */
  #exited(status: ExitStatus): void {
    this.#status = status
    if (this.#outputs.some((output) => output.isOpen)) this.#drain.start()
    else this.#finish(false)
  }

  #open(stream: 'stdout' | 'stderr', fd: number): Output {
    const reader = new OutputReader(fd, {
      chunk: (bytes) => {
        this.#events.output(stream, bytes)
        if (!this.#drain.chunk(bytes.byteLength)) this.#finish(true)
      },
      ended: () => {
        output.isOpen = false
        if (this.#status !== undefined && this.#outputs.every((other) => !other.isOpen)) this.#finish(false)
      },
    })
    const output: Output = { fd, reader, isOpen: true }
    return output
  }

  #finish(truncated: boolean): void {
    const status = this.#status
    if (this.#hasEnded || status === undefined) return
    this.#hasEnded = true
    this.#drain.stop()
    this.#input.abandon()
    for (const { reader, fd } of this.#outputs) void reader.stop().then(() => closeFd(fd))
    this.#events.ended({ ...status, truncated })
  }
}

function isQuiet({ isOpen, reader, fd }: Output): boolean {
  return !isOpen || (reader.isDrained && readableBytes(fd) <= 0)
}
