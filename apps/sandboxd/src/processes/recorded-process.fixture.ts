import type { InputRefusal, ProcessEnd, ProcessSpec, RunningProcess, StartProcess } from './process.ts'

/** A process under test and its recorded events. */
export interface RecordedProcess {
  readonly process: RunningProcess
  readonly ended: Promise<ProcessEnd>
  /** Names of events in order, output chunks included. */
  readonly events: readonly string[]
  readonly stdout: () => Uint8Array
  readonly text: () => string
  readonly errorText: () => string
  readonly settledBytes: () => number
  readonly refusals: readonly InputRefusal[]
}

export interface RecordOptions extends Partial<Omit<ProcessSpec, 'argv'>> {
  /** Called after each chunk is recorded. */
  readonly onOutput?: (process: RunningProcess) => void
}

export const TEST_PATH = '/usr/local/bin:/usr/bin:/bin'

/** Starts `argv` and records its events; throws when it cannot be started. */
export function record(
  start: StartProcess,
  argv: ProcessSpec['argv'],
  options: RecordOptions = {},
): RecordedProcess {
  const { onOutput, ...changes } = options
  const { promise, resolve } = Promise.withResolvers<ProcessEnd>()
  const chunks = { stdout: new Array<Uint8Array>(), stderr: new Array<Uint8Array>() }
  const events: string[] = []
  const refusals: InputRefusal[] = []
  let settledBytes = 0
  const spec: ProcessSpec = {
    argv,
    cwd: '/tmp',
    env: { PATH: TEST_PATH, TERM: 'xterm' },
    mode: 'pipe',
    cols: 80,
    rows: 24,
    ...changes,
  }
  const running = start(spec, {
    output(stream, chunk) {
      events.push(stream)
      chunks[stream].push(chunk)
      if (!('failure' in running)) onOutput?.(running)
    },
    inputSettled(bytes) {
      settledBytes += bytes
    },
    inputRefused(reason) {
      refusals.push(reason)
    },
    inputClosed() {
      events.push('inputClosed')
    },
    resized() {
      events.push('resized')
    },
    ended(end) {
      events.push('ended')
      resolve(end)
    },
  })
  if ('failure' in running) throw new Error(running.message)
  return {
    process: running,
    ended: promise,
    events,
    refusals,
    stdout: () => Buffer.concat(chunks.stdout),
    text: () => Buffer.concat(chunks.stdout).toString(),
    errorText: () => Buffer.concat(chunks.stderr).toString(),
    settledBytes: () => settledBytes,
  }
}

/** `sh -c script`. */
export function shell(script: string): ProcessSpec['argv'] {
  return ['sh', '-c', script]
}
