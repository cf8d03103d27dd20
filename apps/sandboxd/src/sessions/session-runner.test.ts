import { describe, expect, spyOn, test } from 'bun:test'
import {
  DEFAULT_LIMITS,
  decodeServer,
  encode,
  ERRORS,
  type FromServer,
  type ConnectionRights,
  type OutputStream,
  packData,
  type ServerMessage,
} from '@sandwire/protocol'
import { createLog } from '../log.ts'
import type { ProcessEvents, ProcessSpec, RunningProcess } from '../processes/process.ts'
import { planShutdown } from '../shutdown-plan.ts'
import { SessionRunner } from './session-runner.ts'
import type { SendOutcome, SessionConnection } from './connections.ts'

/** A process that the test controls. */
class FakeProcess implements RunningProcess {
  readonly pid = 4242
  readonly spec: ProcessSpec
  readonly events: ProcessEvents
  readonly calls: string[] = []
  /** Called inside `resume`, like a process that delivers a held chunk. */
  onResume: () => void = () => {}
  /** Resolves when it is terminated. */
  onTerminate: Promise<void> = Promise.resolve()

  constructor(spec: ProcessSpec, events: ProcessEvents) {
    this.spec = spec
    this.events = events
  }

  write(chunk: Uint8Array): void {
    this.calls.push(`write ${chunk.byteLength}`)
    this.events.inputSettled(chunk.byteLength)
  }
  closeInput(): void {
    this.calls.push('closeInput')
  }
  resize(cols: number, rows: number): void {
    this.calls.push(`resize ${cols}x${rows}`)
  }
  signal(name: string): void {
    this.calls.push(`signal ${name}`)
  }
  pause(): void {
    this.calls.push('pause')
  }
  resume(): void {
    this.calls.push('resume')
    this.onResume()
  }
  async terminate(): Promise<void> {
    this.calls.push('terminate')
    await this.onTerminate
  }
}

/** A connection that records what is sent. */
class FakeConnection implements SessionConnection {
  readonly requestId = 'attach-1'
  readonly received: FromServer<ServerMessage>[] = []
  outcome: SendOutcome = 'sent'
  closed: number | undefined
  isTerminated = false

  send(data: string | Uint8Array): SendOutcome {
    const frame = decodeServer(data)
    if (frame === undefined) throw new Error('undecodable frame')
    if (this.outcome !== 'lost') this.received.push(frame)
    return this.outcome
  }
  sendOutput(stream: OutputStream, bytes: Uint8Array): SendOutcome {
    return this.send(packData(stream, bytes))
  }
  close(code: number): void {
    this.closed = code
  }
  terminate(): void {
    this.isTerminated = true
  }
  inputSettled(): void {}

  /** Output bytes so far, as text. */
  get text(): string {
    return this.received
      .map((frame) => (frame.kind === 'data' ? new TextDecoder().decode(frame.payload) : ''))
      .join('')
  }
}

const HELLO_MESSAGE = {
  type: 'hello',
  version: 1,
  identity: '0'.repeat(32),
  resuming: false,
  received: 0,
  window: 1_000_000,
  cols: 80,
  rows: 24,
} as const
const HELLO = encode(HELLO_MESSAGE)
const RIGHTS = { principal: 'p', authority: 'driver', dialect: 'v1', take: false } as const
const START = { env: {}, cols: 80, rows: 24 }

function setUp(windowBytes = 8, rights: ConnectionRights = RIGHTS) {
  const processes: FakeProcess[] = []
  const gone: boolean[] = []
  const refused: string[] = []
  const runner = new SessionRunner(
    {
      id: 's1',
      mode: 'pipe',
      overflow: 'block',
      keepSeconds: 60,
      limits: { ...DEFAULT_LIMITS, window: { startBytes: windowBytes, minBytes: 1, maxBytes: windowBytes } },
    },
    {
      argv: ['cat'],
      cwd: '/',
      baseEnv: { PATH: '/bin' },
      isPinned: false,
      isTemplate: false,
      requestId: 'r1',
    },
    {
      startProcess: (spec, events) => {
        const process = new FakeProcess(spec, events)
        processes.push(process)
        return process
      },
      writePane: async () => false,
      createScreen: () => {
        throw new Error('a pipe has no screen')
      },
      log: createLog(
        () => {},
        () => new Date(0),
      ),
      now: () => performance.now(),
      onFinished: () => {},
      onExit: () => {},
      onGone: (_, wasStarted) => gone.push(wasStarted),
      onRefused: (requestId, code) => refused.push(`${requestId} ${code}`),
      countOutput: () => {},
      countInput: () => {},
    },
  )
  const connection = new FakeConnection()
  runner.connected(1, connection, rights, START)
  if (rights.dialect === 'v1') runner.received(1, HELLO)
  const process = processes[0]
  if (process === undefined) throw new Error('no process')
  return { runner, connection, process, gone, refused }
}

/** Output of one turn of the event loop is batched, so tests wait for the next turn. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('SessionRunner', () => {
  test('reports the request of a refused connection, and none of an admitted one', () => {
    const { runner, refused } = setUp()
    const connection = new FakeConnection()
    runner.connected(2, connection, { ...RIGHTS, authority: 'viewer' }, START)
    runner.received(2, encode({ ...HELLO_MESSAGE, identity: 'b'.repeat(32), role: 'driver' }))
    expect(connection.closed).toBe(ERRORS.forbidden.close)
    runner.revoke({})
    expect(refused).toEqual(['attach-1 forbidden'])
  })

  test('starts the process with the base environment and the size of the hello', async () => {
    const { process } = setUp()
    expect(process.spec).toMatchObject({ argv: ['cat'], cwd: '/', cols: 80, rows: 24, mode: 'pipe' })
    expect(process.spec.env).toEqual({ PATH: '/bin', SANDWIRE_SESSION: 's1' })
  })

  test('keeps output in order when resuming the process delivers output synchronously', async () => {
    const { runner, connection, process } = setUp()
    process.events.output('stdout', bytes('aaaaaaaa'))
    await nextTurn()
    expect(process.calls).toEqual(['pause'])
    process.onResume = () => process.events.output('stdout', bytes('cc'))
    process.events.output('stdout', bytes('bbbb'))
    await nextTurn()
    runner.received(1, encode({ type: 'ack', output: 8 }))
    expect(connection.text).toBe('aaaaaaaabbbb')
    runner.received(1, encode({ type: 'ack', output: 12 }))
    expect(process.calls).toEqual(['pause', 'resume'])
    expect(connection.text).toBe('aaaaaaaabbbbcc')
    runner.end()
  })

  test('stops sending when the socket is full and continues when it drains', async () => {
    const { runner, connection, process } = setUp(1_000)
    connection.outcome = 'full'
    process.events.output('stdout', bytes('one'))
    await nextTurn()
    connection.outcome = 'sent'
    process.events.output('stdout', bytes('two'))
    await nextTurn()
    expect(connection.text).toBe('one')
    runner.drained(1)
    expect(connection.text).toBe('onetwo')
    runner.end()
  })

  test('closes a connection that lost a frame, so that the client resumes without a gap', async () => {
    const { runner, connection, process } = setUp(1_000)
    connection.outcome = 'lost'
    process.events.output('stdout', bytes('one'))
    await nextTurn()
    expect(connection.isTerminated).toBe(true)
    expect(runner.session.attachments.attachedCount).toBe(0)
    connection.outcome = 'sent'
    process.events.output('stdout', bytes('two'))
    await nextTurn()
    expect(connection.text).toBe('')
    const again = new FakeConnection()
    runner.connected(2, again, RIGHTS, START)
    runner.received(
      2,
      encode({
        type: 'hello',
        version: 1,
        identity: '0'.repeat(32),
        resuming: true,
        received: 0,
        window: 1_000_000,
        cols: 80,
        rows: 24,
      }),
    )
    expect(again.text).toBe('onetwo')
    runner.end()
  })

  test('sends the exit after the last byte, and is removed when ended', async () => {
    const { runner, connection, process, gone } = setUp(1_000)
    process.events.output('stdout', bytes('bye'))
    await nextTurn()
    process.events.ended({ code: 3, signal: null, truncated: false })
    const last = connection.received.at(-1)
    expect(last).toEqual({
      kind: 'control',
      message: { type: 'exit', code: 3, signal: null, truncated: false, outputEnd: 3 },
    })
    runner.received(1, encode({ type: 'ack', output: 3 }))
    expect(connection.closed).toBe(1000)
    runner.disconnected(1)
    expect(process.calls).not.toContain('terminate')
    runner.end()
    expect(gone).toEqual([true])
    expect(process.calls).toContain('terminate')
  })

  test('terminates a running process when the session is ended', () => {
    const { runner, process } = setUp()
    runner.end()
    expect(process.calls).toEqual(['terminate'])
  })

  test('shuts down in the announced time when a process does not end', async () => {
    const { runner, connection, process } = setUp()
    process.onTerminate = Promise.withResolvers<void>().promise
    await runner.shutDown(planShutdown(20))
    expect(process.calls).toEqual(['terminate'])
    expect(connection.closed).toBe(ERRORS.shutting_down.close)
  })
})

test('[A10] an authorization longer than the longest timer neither expires early nor fires repeatedly', () => {
  using timers = spyOn(globalThis, 'setTimeout')
  const year = 365 * 24 * 60 * 60 * 1000
  const { connection } = setUp(8, { ...RIGHTS, dialect: 'plain', reauthorizeMs: performance.now() + year })
  // The hello timer fires and finds nothing due for a year.
  const [fire] = timers.mock.calls.at(-1) ?? []
  if (typeof fire === 'function') fire()
  expect(timers.mock.calls.at(-1)?.[1]).toBe(2 ** 31 - 1)
  expect(connection.closed).toBeUndefined()
})
