import { Child, type ChildPlan } from '../processes/tree/child.ts'
import { closeFd, kill, readableBytes } from '../processes/linux/libc.ts'
import { OutputReader } from '../processes/pipe/output-reader.ts'
import { PipeInput } from '../processes/pipe/pipe-input.ts'
import { openPipes, type Pipes } from '../processes/pipe/pipes.ts'
import { fail, isFailure } from '../processes/resolve-command.ts'
import type { SpawnFailure, StartOptions } from '../processes/process.ts'
import type { RunningTool } from './tool.ts'

/** Bytes of stderr that are kept, for an error message. */
const STDERR_TAIL_BYTES = 8 * 1024
/** Poll interval for stderr after the exit, while another process keeps it open. */
const QUERY_MS = 5

interface ToolOptions {
  readonly start: StartOptions
  readonly stdin: Uint8Array | undefined
  readonly signal: AbortSignal | undefined
  readonly timeMs: number
}

/** Starts a program on pipes, with the folder as descriptor 3. */
export function startTool(
  plan: Omit<ChildPlan, 'stdio' | 'leadsSession'>,
  folder: number,
  options: ToolOptions,
): ToolProcess | SpawnFailure {
  const pipes = openPipes()
  if (pipes === undefined) return fail('spawn_failed', plan.spec.argv[0], 'no pipe can be opened')
  const child = Child.spawn({ ...plan, stdio: [...pipes.child, folder], leadsSession: true }, options.start)
  for (const fd of pipes.child) closeFd(fd)
  if (!isFailure(child)) return new ToolProcess(child, pipes, options)
  for (const fd of [pipes.stdin, pipes.stdout, pipes.stderr]) closeFd(fd)
  return child
}

/** A running program and its descendants. */
export class ToolProcess implements RunningTool {
  readonly stdout: ReadableStream<Uint8Array>
  readonly stderr: Promise<string>
  readonly exited: RunningTool['exited']
  readonly #child: Child
  #isLate = false

  constructor(child: Child, pipes: Pipes, { stdin, signal, timeMs }: ToolOptions) {
    this.#child = child
    feed(pipes.stdin, stdin)
    const end = (): void => this.#end()
    const timer = setTimeout(() => {
      this.#isLate = true
      end()
    }, timeMs)
    signal?.addEventListener('abort', end, { once: true })
    if (signal?.aborted === true) end()
    // Only now: a process that left the group may keep the output open.
    this.stdout = streamOutput(pipes.stdout, end, () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
    })
    this.exited = this.#awaitExit()
    this.stderr = readTail(pipes.stderr, this.exited)
  }

  async #awaitExit(): Promise<Awaited<RunningTool['exited']>> {
    const status = await this.#child.exited
    const isLate = this.#isLate
    // Remaining processes of its group would keep its output open.
    if (kill(-this.#child.pid, 0) === 0) await this.#child.terminate()
    return { ...status, isLate }
  }

  /** Ends the program and its descendants. */
  #end(): void {
    void this.#child.terminate()
  }
}

/** Writes stdin and closes it; a program need not read it. */
function feed(fd: number, bytes: Uint8Array | undefined): void {
  const input = new PipeInput(fd, { settled: () => undefined, closed: () => undefined })
  if (bytes !== undefined) input.write(bytes)
  input.end()
}

/** Streams output with backpressure. `over` is called once, after its end, an error or `canceled`. */
function streamOutput(fd: number, canceled: () => void, over: () => void): ReadableStream<Uint8Array> {
  const reader = Bun.file(fd).stream().getReader()
  const close = async (): Promise<void> => {
    over()
    try {
      await reader.cancel()
    } catch {
      // An errored stream has closed the descriptor already.
    }
    closeFd(fd)
  }
  const readOrClose = async (): ReturnType<typeof reader.read> => {
    try {
      return await reader.read()
    } catch (error) {
      await close()
      throw error
    }
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await readOrClose()
        if (value !== undefined && value.byteLength > 0) controller.enqueue(value)
        if (!done) return
        controller.close()
        await close()
      },
      async cancel() {
        canceled()
        await close()
      },
    },
    { highWaterMark: 0 },
  )
}

/** Reads the last bytes of stderr until the program has ended and nothing is left. */
async function readTail(fd: number, exited: Promise<unknown>): Promise<string> {
  let tail = Buffer.alloc(0)
  const ended = Promise.withResolvers<void>()
  const reader = new OutputReader(fd, {
    chunk: (bytes) => {
      tail = Buffer.concat([tail, bytes]).subarray(-STDERR_TAIL_BYTES)
    },
    ended: ended.resolve,
  })
  const drained = async (): Promise<void> => {
    await exited
    while (!reader.isDrained || readableBytes(fd) > 0) await Bun.sleep(QUERY_MS)
  }
  await Promise.race([ended.promise, drained()])
  await reader.stop()
  closeFd(fd)
  return tail.toString()
}
